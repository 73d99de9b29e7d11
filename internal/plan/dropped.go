package plan

// KeptBytes returns the bytes of all weight files without the tensors that are left out, and with each
// matrix once: a model that is loaded has one in place of its copies, too.
func (p *Plan) KeptBytes() int64 {
	copies := sum(p.Aliases, func(a Alias) int64 { return a.Tensor.Length })
	return p.SourceBytes() - sum(p.Dropped, Tensor.length) - copies
}

// LeftOut returns the names of the tensors that are left out, as the source has them.
func (p *Plan) LeftOut() []string { return sourceNames(p.Dropped) }

// sourceNames returns the names that tensors have in the source.
func sourceNames(tensors []Tensor) (names []string) {
	for _, t := range tensors {
		names = append(names, t.Source)
	}
	return names
}
