package plan

import "github.com/df11-convert/df11-convert/internal/human"

// KeptBytes returns the bytes of all weight files but for the tensors that are left out.
func (p *Plan) KeptBytes() int64 { return p.SourceBytes() - sum(p.Dropped, Tensor.length) }

// LeftOut returns the names of the tensors that are left out, as the source has them.
func (p *Plan) LeftOut() (names []string) {
	for _, t := range p.Dropped {
		names = append(names, t.Source)
	}
	return names
}

// namesLeftOut names the tensors that are left out, many of one model together.
func (p *Plan) namesLeftOut() string { return human.List(human.ByModule(p.LeftOut())) }
