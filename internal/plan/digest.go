package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// digestForm is what the digest covers: everything that decides output bytes, and nothing else. Its
// JSON is stable, so its fields keep their names and order; a change of meaning needs a new Schema.
type digestForm struct {
	Schema        string              `json:"schema"`
	FormatVersion string              `json:"format_version"`
	Source        string              `json:"source"`
	Commit        string              `json:"commit"`
	Weights       []File              `json:"weights"`
	Layout        catalog.Layout      `json:"layout"`
	Config        digestConfig        `json:"config"`
	Patterns      catalog.PatternDict `json:"pattern_dict"`
	Files         []digestFile        `json:"files"`
	Index         string              `json:"index"`
	Copied        []File              `json:"copied"`
	Components    []File              `json:"components"`
	Aliases       [][2]string         `json:"aliases"`
}

type digestConfig struct{ Mode, Source string }

type digestFile struct {
	Path     string         `json:"path"`
	Units    []digestUnit   `json:"units"`
	Plain    []digestTensor `json:"plain"`
	Metadata [][2]string    `json:"metadata"`
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
	File   int     `json:"file"`
	Offset int64   `json:"offset"`
	Exact  bool    `json:"exact_f32,omitempty"`
}

// Digest returns the sha256, in hexadecimal, of the plan: source id, commit and file etags, format
// version, layout, pattern dict, units and every tensor's place. Machine facts and options that
// change no byte are not part of it.
func (p *Plan) Digest() string {
	form := digestForm{
		Schema: "df11-convert plan 1", FormatVersion: FormatVersion,
		Source: p.source.ID, Commit: p.source.Commit,
		Layout: p.Layout, Config: digestConfig{"new", ""}, Patterns: p.PatternDict,
		Index: p.RemainderIndex, Copied: p.Copied, Components: p.Components,
	}
	if p.Config != "" {
		form.Config = digestConfig{"insert", p.Config}
	}
	for _, w := range p.source.Weights {
		form.Weights = append(form.Weights, w.File)
	}
	for _, a := range p.Aliases {
		form.Aliases = append(form.Aliases, [2]string{a.Tensor.Name, a.Of.Name})
	}
	for _, f := range p.OutputFiles {
		form.Files = append(form.Files, p.digestFile(f))
	}
	data, err := json.Marshal(form)
	if err != nil {
		panic(fmt.Sprintf("plan: internal error: digest: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

func (p *Plan) digestFile(f OutputFile) digestFile {
	d := digestFile{Path: f.Path, Plain: digestTensors(f.Plain)}
	for _, i := range f.Units {
		u := p.Units[i]
		d.Units = append(d.Units,
			digestUnit{u.Path, digestTensors(u.Attrs), digestTensors(u.Siblings), u.Unholdable})
	}
	for _, m := range f.Metadata {
		d.Metadata = append(d.Metadata, [2]string{m.Key, m.Value})
	}
	return d
}

func digestTensors(ts []Tensor) []digestTensor {
	out := make([]digestTensor, len(ts))
	for i, t := range ts {
		out[i] = digestTensor{t.Name, string(t.DType), t.Shape, t.File, t.Offset, t.ExactF32}
	}
	return out
}
