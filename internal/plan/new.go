package plan

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source can't be converted
// as asked. Any other error means that ctx has ended, or that the input isn't what [Survey] asks
// for.
func New(ctx context.Context, src Source, opt Options) (*Plan, error) {
	var notes Notes
	r, inv, err := open(ctx, src, opt, &notes)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m, err := recognize(ctx, r, inv)
	if err != nil {
		return nil, err
	}
	ch, err := conform(ctx, r, m, inv, &notes)
	if err != nil {
		return nil, err
	}
	c := &choice{reading: r, recognition: m, Plan: &Plan{source: r.source, readsFor: r.opt.For, Notes: notes,
		Layout: m.layout, Loader: m.loader, PatternDict: m.dict, Provenance: m.provenance, Unlike: m.unlike, ByNode: m.node != nil,
		Changes: Changes{Dropped: inv.dropped, Aliases: ch.aliases, TiedEmbeddings: ch.tied}}}
	if m.entry != nil {
		c.Entry = m.entry.ID
	}
	inv = ch.inv
	d, err := makeDict(ctx, r, m, ch, &c.Notes)
	if err != nil {
		return nil, err
	}
	c.PatternDict, c.Split, c.aside = d.patterns, d.split, d.aside
	f := &former{choice: c, inv: inv}
	if err = f.formUnits(ctx); err != nil {
		return nil, err
	}
	f.placeAliases()
	if c.Unfilled = c.unfilled(); len(c.Unfilled) > 0 && !opt.Unfilled {
		return nil, refuse(hint.Unfilled,
			"no reader gives these modules their weights: %s", human.List(c.Unfilled))
	}
	for _, step := range []func() error{c.checkParameters, c.checkUnits, f.checkStacks, c.markUnholdable,
		c.placeTensors, c.sortFiles} {
		if ctx.Err() != nil { // with very many tensors, a step takes a while
			return nil, context.Cause(ctx)
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.comment()
	if err := c.checkReader(); err != nil {
		return nil, err
	}
	return c.Plan, nil
}

// A choice is being split into the steps' parts.
type choice struct {
	*reading
	*recognition
	*Plan
	formed *inventory // once the units are formed
	// modules of the entry's dict that this source has in another type, or doesn't have
	aside []string
}

// open reads the small files of a plan's source and lists its tensors.
func open(ctx context.Context, src Source, opt Options, notes *Notes) (*reading, *inventory, error) {
	r, err := read(src, opt)
	if err != nil {
		return nil, nil, err
	}
	inv, err := takeInventory(ctx, r, notes)
	return r, inv, err
}

// Fitting returns the IDs of the entries that fit a source: first the entry that [New] chooses,
// then all others, like-only entries included.
func Fitting(ctx context.Context, src Source, opt Options) ([]string, error) {
	r, inv, err := open(ctx, src, opt, &Notes{})
	if err != nil {
		return nil, err
	}
	var ids []string
	best := bestEntry(r, inv)
	if best != nil && inv.hasBlocks(ctx, best) {
		ids = append(ids, best.ID)
	}
	for _, e := range catalog.All() {
		if e != best && score(r, e, inv) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}
