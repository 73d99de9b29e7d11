package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// A digestForm is what the plan's digest covers. Its JSON is stable, so its fields keep their names
// and order. A change of meaning needs a new Schema.
type digestForm struct {
	Schema   string              `json:"schema"`
	Source   string              `json:"source"`
	Weights  []File              `json:"weights"`
	Layout   catalog.Layout      `json:"layout"`
	Config   string              `json:"config"`
	Patterns catalog.PatternDict `json:"pattern_dict"`
	Index    string              `json:"index"`
	Outputs  map[string]string   `json:"outputs"`
}

// An outputForm is what the digest of an output file covers.
type outputForm struct {
	FormatVersion string         `json:"format_version"`
	Path          string         `json:"path"`
	Units         []digestUnit   `json:"units"`
	Plain         []digestTensor `json:"plain"`
	Aliases       []digestTensor `json:"aliases"` // each with the tensor that it must equal
	Metadata      [][2]string    `json:"metadata"`
}

type digestUnit struct {
	Path       string         `json:"path"`
	Attrs      []digestTensor `json:"attrs"`
	Siblings   []digestTensor `json:"siblings"`
	Unholdable string         `json:"unholdable"`
}

type digestTensor struct {
	Name   string  `json:"name"`
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	File   string  `json:"file"` // identifies the file's content
	Offset int64   `json:"offset"`
	Exact  bool    `json:"exact_f32,omitempty"`
}

// Digest returns the SHA-256, in hexadecimal, of what the plan says of weights: source ID, weight
// files, layout, pattern dict, and every output file. It doesn't cover options and machine facts
// that change no byte of these, nor the commit, nor copied files.
func (p *Plan) Digest() string {
	form := digestForm{
		Schema: "df11-convert plan 2", Source: p.source.ID, Layout: p.Layout, Config: p.Config,
		Patterns: p.PatternDict, Index: p.RemainderIndex, Outputs: p.OutputDigests(),
	}
	for i, w := range p.source.Weights {
		form.Weights = append(form.Weights, File{w.Path, w.Size, p.source.pin(i)})
	}
	return digest(form)
}

// OutputDigests returns, by path, the SHA-256 of everything that decides the bytes of each output
// file: the format, what the file holds, and the content of the source files it's made from.
func (p *Plan) OutputDigests() map[string]string {
	all, src := map[string]string{}, &p.source
	for _, f := range p.OutputFiles {
		form := outputForm{FormatVersion: FormatVersion, Path: f.Path,
			Plain: src.digestTensors(f.Plain)}
		copied := slices.Clone(f.Plain)
		for _, i := range f.Units {
			u := p.Units[i]
			copied = append(copied, u.Siblings...)
			form.Units = append(form.Units, digestUnit{u.Path, src.digestTensors(u.Attrs),
				src.digestTensors(u.Siblings), u.Unholdable})
		}
		for _, a := range p.Aliases {
			if slices.ContainsFunc(copied, func(t Tensor) bool { return t.Name == a.Of.Name }) {
				form.Aliases = append(form.Aliases, src.digestTensors([]Tensor{a.Tensor, a.Of})...)
			}
		}
		for _, m := range f.Metadata {
			form.Metadata = append(form.Metadata, [2]string{m.Key, m.Value})
		}
		all[f.Path] = digest(form)
	}
	return all
}

func (s *Source) digestTensors(ts []Tensor) []digestTensor {
	out := make([]digestTensor, len(ts))
	for i, t := range ts {
		out[i] = digestTensor{t.Name, string(t.DType), t.Shape, s.pin(t.File), t.Offset, t.ExactF32}
	}
	return out
}

// pin identifies the content of a weight file: by its hash, a local file's by the hash of a sample,
// or else by the commit and its path.
func (s *Source) pin(file int) string {
	w := s.Weights[file]
	return fmt.Sprint(cmp.Or(w.ETag, s.Commit+" "+w.Path), " ", w.Size)
}

func digest(form any) string {
	data, err := json.Marshal(form)
	if err != nil {
		panic(fmt.Sprintf("plan: internal error: digest: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
