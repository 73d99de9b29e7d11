package plan

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// decideDict makes the plan's dict by the catalog entry, or by the rule for unknown models. If a
// unit would have more weights than DF11 can hold, it splits all blocks. It leaves the caller's dict
// as it is.
func (f *former) decideDict(ctx context.Context) (err error) {
	if f.opt.PatternDict != nil {
		return nil
	}
	form := f.form
	if f.entry == nil {
		form = f.derive
	}
	for _, f.Split = range []bool{false, true} {
		f.PatternDict, err = form(ctx)
		if err != nil || f.largestUnit(ctx, f.PatternDict) <= maxElems {
			break
		}
	}
	if err == nil && len(f.PatternDict) == 0 {
		err = f.refuseUnknown()
	}
	return err
}

// largestUnit returns the number of weights of the largest unit that a dict would make.
func (f *former) largestUnit(ctx context.Context, dict catalog.PatternDict) (most int64) {
	for _, pat := range dict {
		// a pattern that cannot be compiled is refused when units are formed
		modules, _ := pat.Matching(ctx, f.inv.modules)
		for _, m := range modules {
			most = max(most, f.inv.nWeights(m, pat.Attrs))
		}
	}
	return most
}

// form takes tied embeddings out of the entry's dict, adds the entry's towers, and expands the dict
// if it's a template. The tied embedding stays BF16, and the head isn't stored (docs/format.md
// §15).
func (f *former) form(ctx context.Context) (catalog.PatternDict, error) {
	dict := slices.Clone(f.entry.PatternDict)
	if tied := f.entry.Tied; tied != nil && f.TiedEmbeddings {
		dict = slices.DeleteFunc(dict, func(p catalog.Pattern) bool {
			one := catalog.PatternDict{p}
			return one.Matches(tied.Head) || one.Matches(tied.Embedding)
		})
	}
	dict = slices.DeleteFunc(dict, f.staysAside)
	for _, pat := range f.entry.Towers {
		if f.holdsAll(ctx, pat) {
			dict = append(dict, pat)
		}
	}
	hasFused := f.takesParameters() && len(f.fusedBelow()) > 0
	if !f.entry.Template && !f.Split && !hasFused {
		return dict, nil
	}
	var out catalog.PatternDict
	for _, pat := range dict {
		patterns, err := f.expand(ctx, pat)
		if err != nil {
			return nil, err
		}
		out = append(out, patterns...)
	}
	return out, nil
}

// staysAside reports whether a pattern for a single module, such as the head, isn't used for this
// source: its weight has another type, and stays as it is, or the source has no head, as vendors of
// embedding models publish them. The rest of the model is compressed all the same.
func (f *former) staysAside(pat catalog.Pattern) bool {
	if len(pat.Attrs) > 0 {
		return false
	}
	// a pattern that cannot be compiled is refused when units are formed
	modules, _ := pat.Matching(context.Background(), f.inv.modules)
	if len(modules) == 0 && f.entry.Tied != nil &&
		(catalog.PatternDict{pat}).Matches(f.entry.Tied.Head) {
		f.aside = append(f.aside, f.entry.Tied.Head)
		f.warn("the source has no %s.weight, although its config doesn't tie it to the embedding: "+
			"the result has none either", f.entry.Tied.Head)
		return true
	}
	if len(modules) != 1 {
		return false
	}
	t, ok := f.inv.weight(modules[0], "")
	if !ok || f.inv.isConvertible(t) || !isPlainFloat(t.DType) || !f.inv.isMostlyBF16() {
		return false
	}
	f.aside = append(f.aside, modules[0])
	f.differ("%s is %s and stays so; the official compressor would cast it to BF16", t.Name, t.DType)
	return true
}

// isMostlyBF16 reports whether most bytes of the source are BF16.
func (inv *inventory) isMostlyBF16() bool {
	var all, bf16 int64
	for _, t := range inv.tensors {
		all += t.Length
		if t.DType == safetensors.BF16 {
			bf16 += t.Length
		}
	}
	return 2*bf16 > all
}

// holdsAll reports whether a pattern has modules, and all their weights can be compressed.
func (f *former) holdsAll(ctx context.Context, pat catalog.Pattern) bool {
	// a pattern that cannot be compiled is refused when units are formed
	modules, _ := pat.Matching(ctx, f.inv.modules)
	return len(modules) > 0 && !slices.ContainsFunc(modules, func(m string) bool {
		return slices.ContainsFunc(pat.Attrs, func(attr string) bool {
			_, err := f.inv.unitWeight(m, attr)
			return err != nil
		})
	})
}

// expand turns a pattern of a template into patterns of a dict. It drops the attributes that no
// block has, since they belong to a variant of the class, and lists the experts that exist. Blocks
// with the same list share a pattern. A pattern with an empty list stands for single modules and
// stays as it is. expand refuses a block without an attribute that other blocks have, or with a
// weight of another type, unless the catalog calls the attribute optional.
func (f *former) expand(ctx context.Context, pat catalog.Pattern) ([]catalog.Pattern, error) {
	if len(pat.Attrs) == 0 {
		return []catalog.Pattern{pat}, nil
	}
	blocks, err := pat.Matching(ctx, f.inv.modules)
	if err != nil {
		return nil, err
	}
	has, lacks := map[string]bool{}, map[string]error{} // by the pattern's attributes
	var groups blockGroups
	for _, b := range blocks {
		if !f.isUnit(b) {
			continue
		}
		attrs := f.withFused(b, f.blockAttrs(b, pat.Attrs, has, lacks))
		if len(attrs) > 0 {
			groups.add("", attrs, catalog.LastSplit(b).Index, b)
		}
	}
	for _, a := range pat.Attrs {
		if has[a] && lacks[a] != nil {
			return nil, lacks[a]
		}
	}
	return f.blockPatterns(ctx, pat, groups)
}

// blockAttrs lists the attributes of a block that can be compressed. It takes those with {e} expert
// by expert, up to the last expert that exists or that the config counts. It notes in has which of
// the pattern's attributes the block has, and in lacks why it doesn't have one, or not for all
// experts.
func (f *former) blockAttrs(block string, attrs []string, has map[string]bool,
	lacks map[string]error) (out []string) {
	isExperts := func(i int) bool { return i < len(attrs) && strings.Contains(attrs[i], "{e}") }
	for i, end := 0, 0; i < len(attrs); i = end {
		end = i + 1
		var present []int
		if isExperts(i) {
			for isExperts(end) {
				end++
			}
			present = f.inv.experts(block, attrs[i])
		}
		n := 1
		if last := len(present) - 1; last >= 0 { // if any is missing, one of these is
			n = min(max(f.cfg.Experts(), present[last]+1), len(present)+1)
		}
		for e := range n {
			for _, a := range attrs[i:end] {
				attr := strings.ReplaceAll(a, "{e}", strconv.Itoa(e))
				if f.entry.Keeps(block + "." + attr) {
					continue
				}
				t, err := f.inv.unitWeight(block, attr)
				switch {
				case err == nil:
					has[a] = true
					out = append(out, attr)
				case t.Name != "" || len(present) > 0 || !slices.Contains(f.entry.OptionalAttrs, a):
					lacks[a] = cmp.Or(lacks[a], err)
				}
			}
		}
	}
	return out
}
