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

// catalogDict makes the dict of an entry for a source. The entry's own patterns stay as they are if
// they say all and DF11 can hold what they match.
func catalogDict(ctx context.Context, r *reading, e *catalog.Entry, c *checkpoint,
	fused fusedExperts, notes *Notes) (*dictionary, error) {
	patterns, aside, err := entryPatterns(ctx, e, c, notes)
	if err != nil {
		return nil, err
	}
	d := &dictionary{patterns: patterns, aside: aside}
	if !e.Template && len(fused) == 0 {
		if ok, err := fits(ctx, patterns, c.inv); ok || err != nil {
			return d, err
		}
	}
	t := template{e, r.cfg, c.inv, fused}
	var stacks []stack
	for _, pat := range patterns {
		s, err := t.expand(ctx, pat)
		if err != nil {
			return nil, err
		}
		stacks = append(stacks, s)
	}
	d.patterns, d.split, err = writePatterns(ctx, stacks, c.inv, &r.facts, fused)
	return d, err
}

// entryPatterns returns those patterns of the entry, towers included, that this source has modules
// for. A tied embedding stays BF16, and its head isn't stored (docs/format.md §15). aside lists
// further modules that stay as they are.
func entryPatterns(ctx context.Context, e *catalog.Entry, c *checkpoint,
	notes *Notes) (patterns catalog.PatternDict, aside []string, err error) {
	for _, pat := range e.PatternDict {
		one := catalog.PatternDict{pat}
		if c.tied && e.Tied != nil && (one.Matches(e.Tied.Head) || one.Matches(e.Tied.Embedding)) {
			continue
		}
		module, err := staysAside(ctx, e, pat, c.inv, notes)
		if err != nil {
			return nil, nil, err
		}
		if module != "" {
			aside = append(aside, module)
		} else {
			patterns = append(patterns, pat)
		}
	}
	for _, pat := range e.Towers {
		has, err := holdsAll(ctx, pat, c.inv)
		if err != nil {
			return nil, nil, err
		}
		if has {
			patterns = append(patterns, pat)
		}
	}
	return patterns, aside, nil
}

// staysAside returns the module of a pattern for a single module, such as the head, that isn't used
// for this source: its weight has another type, and stays as it is, or the source has no head, as
// vendors of embedding models publish them. The rest of the model is compressed all the same.
// Otherwise staysAside returns "".
func staysAside(ctx context.Context, e *catalog.Entry, pat catalog.Pattern, inv *inventory,
	notes *Notes) (module string, err error) {
	if len(pat.Attrs) > 0 {
		return "", nil
	}
	modules, err := pat.Matching(ctx, inv.modules)
	if err != nil {
		return "", err
	}
	if len(modules) == 0 && e.Tied != nil && (catalog.PatternDict{pat}).Matches(e.Tied.Head) {
		notes.warn("the source has no %s.weight, although its config doesn't tie it to the embedding: "+
			"the result has none either", e.Tied.Head)
		return e.Tied.Head, nil
	}
	if len(modules) != 1 {
		return "", nil
	}
	t, ok := inv.weight(modules[0], "")
	if !ok || inv.isConvertible(t) || !isPlainFloat(t.DType) || !inv.isMostlyBF16() {
		return "", nil
	}
	notes.differ("%s is %s and stays so; the official compressor would cast it to BF16", t.Name, t.DType)
	return modules[0], nil
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
func holdsAll(ctx context.Context, pat catalog.Pattern, inv *inventory) (bool, error) {
	modules, err := pat.Matching(ctx, inv.modules)
	for _, m := range modules {
		for _, attr := range pat.Attrs {
			if _, err := inv.unitWeight(m, attr); err != nil {
				return false, nil //nolint:nilerr // the weight stays as it is
			}
		}
	}
	return len(modules) > 0, err
}

// A template finds the blocks of a source that an entry's patterns stand for.
type template struct {
	entry *catalog.Entry
	cfg   *catalog.Config
	inv   *inventory
	fused fusedExperts
}

// expand finds the blocks of a pattern and the attributes of each. It drops the attributes that no
// block has, since they belong to a variant of the class, and lists the experts that exist. A
// pattern with an empty list stands for single modules and has no blocks. expand refuses a block
// without an attribute that other blocks have, or with a weight of another type, unless the catalog
// calls the attribute optional.
func (t template) expand(ctx context.Context, pat catalog.Pattern) (stack, error) {
	s := stack{pattern: pat, single: len(pat.Attrs) == 0}
	if s.single {
		return s, nil
	}
	blocks, err := pat.Matching(ctx, t.inv.modules)
	if err != nil {
		return stack{}, err
	}
	found := attrsFound{has: map[string]bool{}, lacks: map[string]error{}}
	for _, b := range blocks {
		if t.cfg.IsExtraLayer(b) || t.entry.Keeps(b) {
			continue
		}
		if attrs := slices.Concat(t.blockAttrs(b, pat.Attrs, found), t.fused[b]); len(attrs) > 0 {
			s.groups.add("", attrs, catalog.LastSplit(b).Index, b)
		}
	}
	for _, a := range pat.Attrs {
		if found.has[a] && found.lacks[a] != nil {
			return stack{}, found.lacks[a]
		}
	}
	return s, nil
}

// attrsFound says which of a pattern's attributes any block has, and why a block lacks one, wholly
// or for some experts.
type attrsFound struct {
	has   map[string]bool
	lacks map[string]error
}

// blockAttrs lists the attributes of a block that can be compressed, and adds to found what it finds.
// It takes those with {e} expert by expert, up to the last expert that exists or that the config
// counts.
func (t template) blockAttrs(block string, attrs []string, found attrsFound) (out []string) {
	isExperts := func(i int) bool { return i < len(attrs) && strings.Contains(attrs[i], "{e}") }
	for i, end := 0, 0; i < len(attrs); i = end {
		end = i + 1
		var present []int
		if isExperts(i) {
			for isExperts(end) {
				end++
			}
			present = t.inv.experts(block, attrs[i])
		}
		n := 1
		if last := len(present) - 1; last >= 0 { // if any is missing, one of these is
			n = min(max(t.cfg.Experts(), present[last]+1), len(present)+1)
		}
		for e := range n {
			for _, a := range attrs[i:end] {
				attr := strings.ReplaceAll(a, "{e}", strconv.Itoa(e))
				if t.entry.Keeps(block + "." + attr) {
					continue
				}
				w, err := t.inv.unitWeight(block, attr)
				switch {
				case err == nil:
					found.has[a] = true
					out = append(out, attr)
				case w.Name != "" || len(present) > 0 || !slices.Contains(t.entry.OptionalAttrs, a):
					found.lacks[a] = cmp.Or(found.lacks[a], err)
				}
			}
		}
	}
	return out
}
