package inspect

func HTML(r *Report) []byte         { return nil }
func PNG(r *Report) ([]byte, error) { return nil, nil }
