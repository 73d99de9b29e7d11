package plan

import (
	"context"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// maxElems is the largest unit that the loader's 32-bit counters can hold (docs/format.md §9).
const maxElems = 1<<31 - 1

// A dictionary is the plan's pattern dict, and what had to be decided for it.
type dictionary struct {
	patterns catalog.PatternDict
	split    bool     // blocks are taken apart, because one exceeds DF11's limit
	aside    []string // modules of the entry's dict that this source has in another type, or lacks
}

// makeDict makes the plan's dict: the caller's, unchanged; or the entry's, fitted to this source;
// or one derived from the tensors.
func makeDict(ctx context.Context, r *reading, m *recognition, c *checkpoint,
	notes *Notes) (*dictionary, error) {
	if r.opt.PatternDict != nil {
		return &dictionary{patterns: r.opt.PatternDict}, nil
	}
	var fused fusedExperts
	if takesParameters(r.opt.For, m.layout) {
		fused = findFused(c.inv, m.entry)
	}
	var d *dictionary
	var err error
	if m.entry != nil {
		d, err = catalogDict(ctx, r, m.entry, c, fused, notes)
	} else {
		d, err = deriveDict(ctx, r, m, c, fused)
	}
	if err == nil && len(d.patterns) == 0 {
		err = refuseUnknown(c.inv)
	}
	return d, err
}

// fits reports whether DF11 can hold every unit that a dict would make.
func fits(ctx context.Context, patterns catalog.PatternDict, inv *inventory) (bool, error) {
	for _, pat := range patterns {
		modules, err := pat.Matching(ctx, inv.modules)
		if err != nil {
			return false, err
		}
		for _, m := range modules {
			if inv.nWeights(m, pat.Attrs) > maxElems {
				return false, nil
			}
		}
	}
	return true, nil
}

// refuseUnknown says why the source has nothing to compress.
func refuseUnknown(inv *inventory) error {
	if inv.isVAE() {
		return refuse(hint.VAE, "the tensors are named as those of a VAE, whose weights are mostly "+
			"convolutions, and DF11 doesn't compress these")
	}
	for _, t := range inv.tensors {
		if len(t.Shape) == 2 && !inv.isConvertible(t) && strings.HasSuffix(t.Name, ".weight") {
			return inv.refuseDType(t)
		}
	}
	return refuse(hint.Unknown,
		"the catalog doesn't know this model, and its names show no stack of blocks to compress")
}

// isVAE reports whether the source has the first and the last convolution of an image autoencoder,
// as diffusers and ComfyUI name them.
func (inv *inventory) isVAE() bool {
	for _, prefix := range []string{"", "first_stage_model.", "vae."} {
		first, hasFirst := inv.shape(prefix + "encoder.conv_in.weight")
		last, hasLast := inv.shape(prefix + "decoder.conv_out.weight")
		if hasFirst && hasLast && len(first) > 2 && len(last) > 2 {
			return true
		}
	}
	return false
}
