package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// A recognition says which model a source holds, as far as the catalog knows it: whose dict, names
// and ties apply, and what loads the output. It never changes.
type recognition struct {
	entry *catalog.Entry // nil if none applies: the dict is given without one, or derived
	// of the caller, or else of the entry; nil if it has to be derived
	dict       catalog.PatternDict
	provenance string         // see Plan.Provenance
	unlike     bool           // the caller named the entry, and it doesn't fit the source
	layout     catalog.Layout // of the output
	loader     catalog.Loader
	node       catalog.PatternDict // the ComfyUI node's dict for this class; nil if it has none
	names      naming
}

// A naming says how the names of the source's tensors relate to the class that the source states.
type naming struct {
	foreign string // that class, if the names aren't the class's; else ""
	// transformers makes the class's names, or its fused experts, of the source's tensors
	mapped  bool
	renames [][2]string // of that class
}

// recognize finds the entry that the caller names, or else the one that fits the source best. If
// the caller gives a dict, the entry that the caller names lends only its names and ties: the
// config.json of a finished model states the dict, and nothing else.
func recognize(ctx context.Context, r *reading, inv *inventory) (*recognition, error) {
	m := &recognition{names: naming{renames: r.facts.Renames}}
	if err := askLayout(ctx, r, inv); err != nil {
		return nil, err
	}
	best := bestEntry(r, inv)
	if best != nil && !inv.hasBlocks(ctx, best) {
		best = nil
		// code may define another class of that name, and a base model has shorter paths
		if !r.cfg.Holds("auto_map") && r.facts.Bare == "" {
			m.names.foreign = r.cfg.Class()
		}
	}
	if best != nil && best.NodeLoads() {
		m.node = best.PatternDict
	}
	var err error
	if m.entry, err = chooseEntry(ctx, r, inv, best); err != nil {
		return nil, err
	}
	m.layout = r.survey.Layout
	switch e := m.entry; {
	case r.opt.PatternDict != nil:
		m.dict, m.provenance = r.opt.PatternDict, "given"
	case e == nil:
		m.provenance, m.loader = derived, r.cfg.GuessLoader()
	default:
		m.dict, m.provenance, m.unlike = e.PatternDict, e.Provenance, score(r, e, inv) == 0
		m.layout, m.loader = e.Layout, e.Loader
		if listed := e.Match.Architectures; slices.Contains(listed, e.Loader.Class) &&
			slices.Contains(listed, r.cfg.Class()) {
			m.loader.Class = r.cfg.Class()
		}
	}
	m.layout = cmp.Or(r.opt.Layout, m.layout)
	switch isChanged := inv.changes(&r.facts); {
	case isChanged && r.facts.IsNew:
		m.names.foreign, m.names.mapped = r.cfg.Class(), m.names.foreign == ""
	case isChanged && m.entry == nil:
		m.loader.Transformers = "<5"
	}
	return m, nil
}

// chooseEntry returns the entry that applies, or nil: the one that the caller names, or else the
// best, unless the caller gives a dict. For a finished model, any entry that fits may lend its
// names. chooseEntry refuses an entry that can't be used for the source.
func chooseEntry(ctx context.Context, r *reading, inv *inventory, best *catalog.Entry) (*catalog.Entry, error) {
	var e *catalog.Entry
	switch {
	case r.opt.Finished:
		fit := fitting(ctx, r, inv)
		isNamed := func(e *catalog.Entry) bool { return e.ID == r.opt.Like }
		if i := slices.IndexFunc(fit, isNamed); i >= 0 {
			e = fit[i]
		} else if len(fit) > 0 {
			e = fit[0]
		}
	case r.opt.Like != "":
		if err := CheckLike(r.opt.Like); err != nil {
			return nil, err
		}
		e = catalog.Find(r.opt.Like)
	case r.opt.PatternDict == nil:
		e = best
	}
	if e == nil {
		return nil, nil
	}
	switch {
	case e.Refuse != nil:
		return nil, e.Refuse
	case e.Layout.Family() != r.survey.Layout:
		return nil, refuse(hint.LikeLayout,
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, r.survey.Layout)
	}
	return e, nil
}

// CheckLike refuses the name of an entry that the catalog doesn't have.
func CheckLike(like string) error {
	if like == "" || catalog.Find(like) != nil {
		return nil
	}
	h := hint.LikeUnknown
	if near := catalog.Near(like); len(near) > 0 {
		h = hint.Like.With("entries", strings.Join(near, ", "))
	}
	return unknown(h, "the catalog has no entry %s", like)
}

// askLayout refuses a source without a config whose tensors have ComfyUI's names and whose file has
// a library's: unless the caller says so, nothing shows which of the two loads it.
func askLayout(ctx context.Context, r *reading, inv *inventory) error {
	if r.opt.Layout != "" || r.opt.PatternDict != nil || r.opt.Like != "" || r.opt.Finished ||
		r.survey.Config+r.survey.ModelIndex != "" || r.survey.Layout == catalog.ComfyUI {
		return nil
	}
	prefixed := func(e *catalog.Entry) bool {
		return len(e.Match.Markers) > 0 && slices.ContainsFunc(comfyPrefixes, func(prefix string) bool {
			return e.Score(r.cfg, func(name string) ([]int64, bool) { return inv.shape(prefix + name) }) > 0
		})
	}
	for _, e := range catalog.All() {
		if e.Layout == catalog.ComfyUI && !e.LikeOnly && (prefixed(e) ||
			e.Score(r.cfg, inv.shape) > 0 && inv.hasBlocks(ctx, e)) {
			return refuse(hint.WhichLayout.With("layout", string(r.survey.Layout)),
				"the tensors are those of %s, as ComfyUI names them, but the file is named as for %s, "+
					"and no config.json says what it is", e.ID, r.survey.Layout)
		}
	}
	return nil
}

// bestEntry returns the entry with the highest score, the first of equals, or nil if none fits. It
// leaves like-only entries out.
func bestEntry(r *reading, inv *inventory) (best *catalog.Entry) {
	most := 0
	for _, e := range catalog.All() {
		if n := score(r, e, inv); n > most && !e.LikeOnly {
			best, most = e, n
		}
	}
	return best
}

// score says how well an entry fits the source; 0 means that it doesn't.
func score(r *reading, e *catalog.Entry, inv *inventory) int {
	if e.Layout.Family() != r.survey.Layout {
		return 0
	}
	return e.Score(r.cfg, inv.shape)
}

// hasBlocks reports whether the source has any block of an entry. A relative of the entry's class
// may have other paths; then the catalog doesn't know it. hasBlocks ignores names that can't be
// changed as the entry wants, which are refused later.
func (inv *inventory) hasBlocks(ctx context.Context, e *catalog.Entry) bool {
	if len(e.PatternDict) == 0 {
		return true
	}
	named, err := inv.named(ctx, e.Renames(), e.PatternDict)
	return err != nil || e.Blocks().CountMatching(ctx, named.modules) > 0
}

// Fitting returns the IDs of the entries that fit a source: first the entry that [New] chooses,
// then all others, like-only entries included.
func Fitting(ctx context.Context, src Source, opt Options) (ids []string, err error) {
	r, err := readSource(src, opt)
	if err != nil {
		return nil, err
	}
	inv, err := takeInventory(ctx, r, &Notes{})
	if err != nil {
		return nil, err
	}
	for _, e := range fitting(ctx, r, inv) {
		ids = append(ids, e.ID)
	}
	return ids, nil
}

// fitting returns the entries that fit the source, the best one first.
func fitting(ctx context.Context, r *reading, inv *inventory) (fit []*catalog.Entry) {
	best := bestEntry(r, inv)
	if best != nil && inv.hasBlocks(ctx, best) {
		fit = append(fit, best)
	}
	for _, e := range catalog.All() {
		if e != best && score(r, e, inv) > 0 {
			fit = append(fit, e)
		}
	}
	return fit
}
