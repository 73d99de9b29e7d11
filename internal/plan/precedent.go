package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// A precedent is what the catalog knows of tiny models like the output that readers have loaded.
type precedent struct {
	*catalog.Tried      // of the output's class and modules; nil if none was tried
	tied           bool // head and embedding of the output are one matrix
	// the source is of transformers 5: saved by it, or of a class that version 4 doesn't have
	isNew bool
}

// findPrecedent looks up the models that were tried, and says which of their results count.
func findPrecedent(o *output) precedent {
	cfg := o.from.cfg
	version, _, _ := strings.Cut(catalog.Decode[string](cfg.Raw["transformers_version"]), ".")
	major, _ := strconv.Atoi(version)
	stated := catalog.LookUp[bool](cfg, "tie_word_embeddings")
	t := precedent{
		tied:  o.tied || !o.storesHead() && (stated == nil || *stated),
		isNew: major >= 5 || o.from.facts.IsNew,
	}
	all := catalog.AllTried()
	if i := slices.IndexFunc(all, o.isLike); i >= 0 {
		t.Tried = &all[i]
	}
	return t
}

// isLike reports whether the output has a tried class, stores its experts alike, and compresses only
// modules that are, or lie in, modules that were compressed there.
func (o *output) isLike(t catalog.Tried) bool {
	if t.ModelType != o.from.cfg.ModelType || t.Class != o.from.cfg.Class() {
		return false
	}
	form := o.experts()
	return (form == "" || form == t.Experts) &&
		!slices.ContainsFunc(o.units, func(u Unit) bool { return !t.Covers(u.Path) })
}

// experts says how the output stores its experts: "fused", "separate", or "" if it has none.
func (v *division) experts() string {
	isSeparate := func(t Tensor) bool { return separateExpert.MatchString(t.Name) }
	switch {
	case v.holds(Tensor.IsFusedExperts):
		return "fused"
	case slices.ContainsFunc(v.units, func(u Unit) bool { return slices.ContainsFunc(u.Attrs, isSeparate) }):
		return "separate"
	}
	return ""
}

// holds reports whether any tensor is of a kind.
func (v *division) holds(is func(Tensor) bool) bool {
	return slices.ContainsFunc(v.plain(), is) || slices.ContainsFunc(v.units,
		func(u Unit) bool { return slices.ContainsFunc(u.Attrs, is) })
}

// storesHead reports whether the output has a matrix for its head.
func (o *output) storesHead() bool {
	return o.holds(func(t Tensor) bool {
		return slices.Contains(headNames, catalog.Parent(o.model.names.inClass(t.Name)))
	})
}

// outcomes returns the verdicts about a model like the output in a reader with transformers 4 and 5.
func (t precedent) outcomes(reader string) (in4, in5 Verdict) {
	if t.Tried == nil || t.Results[reader] == nil {
		return Untested, Untested
	}
	results := t.Results[reader]
	if t.isNew {
		in5 = t.cameOut(results[2])
		return in5, in5
	}
	return t.cameOut(results[0]), t.cameOut(results[1])
}

// cameOut returns the verdict that a result of a tiny model gives. A model whose embeddings are tied,
// as this one's are or aren't, may come out otherwise.
func (t precedent) cameOut(result string) Verdict {
	switch result {
	case "equal", map[bool]string{true: "tied", false: "untied"}[t.tied]:
		return Loads
	case "-":
		return Untested
	}
	return Refuses
}

// verdict sums up the verdicts about a reader with both versions.
func (t precedent) verdict(reader string) Verdict {
	in4, in5 := t.outcomes(reader)
	switch {
	case in4 == Loads || in5 == Loads:
		return Loads
	case in4 == Refuses && in5 == Refuses:
		return Refuses
	}
	return Untested
}

// officialLoader returns how, and with which transformers, the official loader takes the output.
func officialLoader(o *output, t precedent) catalog.Loader {
	loader := o.model.loader
	if class := o.from.cfg.OwnClass(); t.Tried == nil && class != "" {
		loader = catalog.Loader{Via: catalog.ViaClass, Class: class, RemoteCode: true}
	}
	if strings.Contains(loader.Transformers, "<") || strings.HasPrefix(loader.Transformers, ">=5") {
		return loader
	}
	switch in4, in5 := t.outcomes(OfficialReader); {
	case t.isNew || in5 == Loads && in4 != Loads:
		loader.Transformers = ">=5"
	case in5 != Loads:
		loader.Transformers = strings.TrimPrefix(loader.Transformers+",<5", ",")
	}
	return loader
}

// condition says which packages the official loader needs for the output.
func condition(loader catalog.Loader) string {
	var parts []string
	if loader.Via == catalog.ViaClass {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(loader.Class, "X, the model's"))
	}
	if loader.Transformers != "" {
		parts = append(parts, "transformers "+loader.Transformers)
	}
	if loader.Remark != "" {
		parts = append(parts, loader.Remark)
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}
