package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// Digest returns the SHA-256, in hexadecimal, of what the plan says of weights: source ID, weight
// files, layout, pattern dict, every output file with the aliases that are compared with it, and
// the tensors that are left out. It doesn't cover the commit or copied files, nor anything else
// that doesn't change these bytes, such as options or the machine.
func (p *Plan) Digest() string {
	var weights []File
	for i, w := range p.source.Weights {
		weights = append(weights, File{w.Path, w.Size, p.source.pin(i)})
	}
	form := []any{planSchema, p.source.ID, weights, p.Layout, p.Config, p.PatternDict,
		p.RemainderIndex, p.OutputDigests()}
	if len(p.Dropped) > 0 {
		form = append(form, p.source.decisive(p.Dropped))
	}
	return digest(form)
}

// planSchema changes when the meaning of a digest does.
const planSchema = "df11-convert plan 3"

// OutputDigests returns, by path, the SHA-256 of everything that decides the bytes of each output
// file, or is compared with them: the format, what the file holds, and the content of the source
// files it's made from.
func (p *Plan) OutputDigests() map[string]string {
	all := map[string]string{}
	for _, f := range p.OutputFiles {
		all[f.Path] = p.outputDigest(f)
	}
	return all
}

func (p *Plan) outputDigest(f OutputFile) string {
	var units, aliases []any
	src, stored := &p.source, slices.Clone(f.Plain)
	for _, i := range f.Units {
		u := p.Units[i]
		stored = append(append(stored, u.Siblings...), u.Attrs...)
		units = append(units,
			[]any{u.Path, src.decisive(u.Attrs), src.decisive(u.Siblings), u.Unholdable})
	}
	for _, a := range p.Aliases { // each with the tensor that it must equal
		if slices.ContainsFunc(stored, func(t Tensor) bool { return t.Name == a.Of.Name }) {
			aliases = append(aliases, src.decisive([]Tensor{a.Tensor, a.Of}))
		}
	}
	return digest([]any{FormatVersion, f.Path, units, src.decisive(f.Plain), aliases, f.Metadata})
}

// decisive returns what decides the bytes of an output, for each of its tensors.
func (s *Source) decisive(ts []Tensor) []any {
	out := make([]any, len(ts))
	for i, t := range ts {
		out[i] = []any{t.Name, t.DType, t.Shape, s.pin(t.File), t.Offset, t.ExactF32}
	}
	return out
}

// pin identifies the content of a weight file: by its hash, or else by the commit and its path. For
// a local file, it's the hash of a sample, which differs between models and proves nothing.
func (s *Source) pin(file int) string {
	w := s.Weights[file]
	return fmt.Sprint(cmp.Or(w.ETag, s.Commit+" "+w.Path), " ", w.Size)
}

// digest hashes values whose JSON is stable.
func digest(form any) string {
	data, err := json.Marshal(form)
	if err != nil {
		panic(fmt.Sprintf("plan: internal error: digest: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
