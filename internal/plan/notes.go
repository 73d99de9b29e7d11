package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Notes are what the user should know about a plan. Each step adds its own.
type Notes struct {
	// where the output differs from the official route, and why
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"` // what may go wrong
	// the Warnings about what readers of the source open and the output lacks
	Lacks []string `json:"-"`
	// which other part of the pipeline stays BF16 although it has the same class, and how to
	// compress it
	Twin string `json:"-"`
	// whether the official loader and the ComfyUI node load the output
	Readers []Reader `json:"readers,omitempty"`
}

func (n *Notes) warn(format string, args ...any) {
	n.Warnings = append(n.Warnings, human.Message(format, args...))
}

// lack warns that the output lacks files.
func (n *Notes) lack(format string, args ...any) {
	n.warn(format, args...)
	n.Lacks = append(n.Lacks, n.Warnings[len(n.Warnings)-1])
}

// differ notes a difference from the official route's output.
func (n *Notes) differ(format string, args ...any) {
	n.Differences = append(n.Differences, human.Message(format, args...))
}

// noteOutput notes what the user should know about a whole output. readers are those that notes
// get, the official loader first.
func noteOutput(o *output, readers []Reader, notes *Notes) {
	cfg := o.from.cfg
	if key := statedQuant(cfg); key != "" {
		notes.warn("%s says that the weights are quantized (%s), but none is: remove that member",
			o.from.survey.Config, key)
	}
	if cfg.Class() == "" && o.model.layout.Family() == catalog.Transformers {
		todo := "put its config.json next to the weights"
		if o.from.source.Config != nil {
			todo = "add its architectures to " + o.from.survey.Config
		}
		notes.warn("nothing says which class the model is, so no loader builds it by itself: %s", todo)
	}
	if foreign := o.model.names.foreign; foreign != "" {
		notes.warn("the tensor names aren't the module paths of %s, which the config states: that class "+
			"can't load the output", foreign)
	}
	if o.dict.split {
		notes.differ("layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	nExtra := 0
	for _, t := range o.remainder {
		if cfg.IsExtraLayer(catalog.Parent(t.Name)) {
			nExtra++
		}
	}
	if nExtra > 0 {
		notes.differ("%s of layers that the model class doesn't build are kept; the official route "+
			"drops them", human.Count(nExtra, "tensor"))
	}
	noteCasts(o.plain(), cfg.ModelDType(), notes)
	if opt := o.from.opt; opt.PatternDict != nil && !opt.Finished {
		noteBlocks(o, notes)
	}
	switch {
	case !slices.ContainsFunc(readers, func(r Reader) bool { return r.Loads != Refuses }):
		// [Plan.NoLoader] says it
	case o.model.provenance == derived && readers[0].Loads != Loads:
		notes.warn("untested: the catalog doesn't know this model, and no one has loaded a model converted " +
			"this way yet; its list of compressed modules was derived from tensor names and shapes")
	}
}

// noteBlocks warns of numbered blocks that a given dict has no module in, although they hold
// matrices that DF11 could compress.
func noteBlocks(o *output, notes *Notes) {
	compressed := map[string]bool{}
	total := sum(o.remainder, Tensor.SpoolBytes)
	for _, u := range o.units {
		total += u.NBytes() + sum(u.Siblings, Tensor.SpoolBytes)
		compressed[blockOf(u.Path)] = true
		for _, t := range u.Attrs {
			compressed[blockOf(t.Name)] = true
		}
	}
	var missing []string
	var nBytes int64
	for _, t := range o.remainder {
		block := blockOf(t.Name)
		if block == "" || compressed[block] || len(t.Shape) != 2 || !o.inv.isConvertible(t) {
			continue
		}
		nBytes += t.SpoolBytes()
		if !slices.Contains(missing, block) {
			missing = append(missing, block)
		}
	}
	if len(missing) > 0 {
		slices.SortFunc(missing, human.CompareNames)
		notes.warn("the pattern dict leaves out %s (%s), so %d%% of the model stays BF16",
			human.Count(len(missing), "block"), human.List(missing), 100*nBytes/total)
	}
}

// blockOf returns the path of the outermost numbered block that a module or tensor is in, or "".
func blockOf(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if _, ok := catalog.Number(p); ok {
			return strings.Join(parts[:i+1], ".")
		}
	}
	return ""
}

// Refused returns the reader that the output is for, if every reader refuses it, and nil otherwise.
func (p *Plan) Refused() *Reader {
	if len(p.Readers) == 0 || slices.ContainsFunc(p.Readers,
		func(r Reader) bool { return r.Loads != Refuses }) {
		return nil
	}
	name := OfficialReader
	switch {
	case p.Layout == catalog.ComfyUI:
		name = ComfyReader
	case p.HoldsParameters():
		name = OwnReader
	}
	i := slices.IndexFunc(p.Readers, func(r Reader) bool { return r.Name == name })
	return &p.Readers[max(0, i)]
}

// NoLoader says that no known loader takes the output, and why not, or returns "".
func (p *Plan) NoLoader() string {
	if r := p.Refused(); r != nil {
		return human.Message("no known loader takes the result: %s: %s", r.Name, r.Why)
	}
	return ""
}

// noteCasts notes plain tensors in another floating-point type than the model's.
func noteCasts(plain []Tensor, model safetensors.DType, notes *Notes) {
	byType := map[safetensors.DType]int{}
	for _, t := range plain {
		if t.DType != model && isPlainFloat(t.DType) {
			byType[t.DType]++
		}
	}
	article := "a"
	if strings.HasPrefix(string(model), "F") {
		article = "an"
	}
	for _, dtype := range slices.Sorted(maps.Keys(byType)) {
		notes.differ("%s in %s %s model: kept as stored; the official route and some loaders cast them",
			human.Count(byType[dtype], fmt.Sprintf("plain %s tensor", dtype)), article, model)
	}
}
