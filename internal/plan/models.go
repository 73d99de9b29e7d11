package plan

// Model is one line of the catalogue listing.
type Model struct {
	ID         string   `json:"id"`
	Layout     Layout   `json:"layout"`
	Match      Match    `json:"match"`
	Provenance string   `json:"provenance"`
	LikeOnly   bool     `json:"like_only"`
	Refused    string   `json:"refused,omitempty"`
	Loader     Loader   `json:"loader"`
	DF11Repos  []string `json:"df11_repos"`
	Examples   []string `json:"example_repos"`
	Notes      string   `json:"notes,omitempty"`
}

// Models lists the embedded catalogue in its order.
func Models() ([]Model, error) {
	c, err := Embedded()
	if err != nil {
		return nil, err
	}
	out := make([]Model, len(c.Entries))
	for i, e := range c.Entries {
		out[i] = Model{
			ID: e.ID, Layout: e.Layout, Match: e.Match, Provenance: e.Provenance, LikeOnly: e.LikeOnly, Loader: e.Loader,
			DF11Repos: append([]string{}, e.DF11Repos...), Examples: append([]string{}, e.ExampleRepos...), Notes: e.Notes,
		}
		if e.Refuse != nil {
			out[i].Refused = e.Refuse.Why
		}
	}
	return out, nil
}
