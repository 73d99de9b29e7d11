package inspect

func PNG(r *Report) ([]byte, error) { return nil, nil }
