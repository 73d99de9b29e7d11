package plan

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source can't be converted
// as asked. Any other error means that ctx has ended, or that the input isn't what [Survey] asks
// for.
func New(ctx context.Context, src Source, opt Options) (*Plan, error) {
	p := &Plan{source: src}
	r, err := read(src, opt)
	if err != nil {
		return nil, err
	}
	inv, dropped, err := r.takeTensors(&p.Notes)
	if err != nil {
		return nil, err
	}
	inv = r.rebase(ctx, inv)
	c, err := r.choose(ctx, inv)
	if err != nil {
		return nil, err
	}
	p.Layout, p.Entry, p.Provenance, p.Unlike = c.layout, c.id, c.provenance, c.unlike
	p.ByNode = c.node != nil
	if inv, err = c.renamePaths(ctx, inv, &p.Notes); err != nil {
		return nil, err
	}
	inv, p.TiedEmbeddings, p.Aliases, err = c.resolveTies(inv, &p.Notes)
	if err != nil {
		return nil, err
	}
	p.Dropped, p.Renamed = dropped, inv.renamed
	f := &former{choice: c, inv: inv, tied: p.TiedEmbeddings}
	if p.PatternDict, p.Split, err = f.settle(ctx); err != nil {
		return nil, err
	}
	if p.Units, p.Remainder, err = f.formUnits(ctx, p.PatternDict); err != nil {
		return nil, err
	}
	if p.Unfilled = c.unfilled(inv, p.Units); len(p.Unfilled) > 0 && !opt.Unfilled {
		return nil, refuse("leave those modules out of the pattern dict, or accept them with --unfilled",
			"no reader gives these modules their weights: %s", human.List(p.Unfilled))
	}
	if err := p.checkUnits(); err != nil {
		return nil, err
	}
	if err := f.checkStacks(p.Units, p.PatternDict, &p.Notes); err != nil {
		return nil, err
	}
	if err := p.markUnholdable(); err != nil {
		return nil, err
	}
	if err := p.placeTensors(); err != nil {
		return nil, err
	}
	if err := p.sortFiles(r); err != nil {
		return nil, err
	}
	p.comment(c)
	return p, nil
}

// Fitting returns the IDs of the entries that fit a source: first the entry that [New] chooses,
// then all others, like-only entries included.
func Fitting(ctx context.Context, src Source, opt Options) ([]string, error) {
	r, err := read(src, opt)
	if err != nil {
		return nil, err
	}
	inv, _, err := r.takeTensors(&Notes{})
	if err != nil {
		return nil, err
	}
	inv = r.rebase(ctx, inv)
	var ids []string
	best := r.bestEntry(inv)
	if best != nil && inv.hasBlocks(ctx, best) {
		ids = append(ids, best.ID)
	}
	for _, e := range catalog.All() {
		if e != best && r.score(e, inv) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}
