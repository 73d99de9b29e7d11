package publish

import (
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An author is what is known about the run that made a claim, a journal or a manifest.
type author int

const (
	unknown      author = iota // the file says nothing
	stranger                   // made another result
	otherWeights               // made this result from other weights, or from weights that aren't known
	sameWeights                // made this result from these very weights, by another plan
	samePlan                   // followed this plan, for these weights
)

// author says who made a claim. Two results are the same if they have the same weights of the
// source, layout, component, and dict. An update, made from another commit of the same source,
// counts as the same result. A manifest lists the SHA-256 of the source's weights. A journal
// doesn't, so the run rebuilds the source files before the result counts
// (internal/convert/rebuild.go). The argument files holds the files next to the claim.
func (c *Conversion) author(ctx context.Context, claim ledger.Claim, files contents) (author, error) {
	if claim.Plan == "" {
		return unknown, nil
	}
	if claim.Result.Contradicts(c.identity) {
		return stranger, nil
	}
	weights, err := c.hashed(ctx, claim)
	switch {
	case err != nil:
		return unknown, err
	case weights == nil && claim.Plan == c.Digest:
		return samePlan, nil
	case weights != nil && slices.Equal(weights, claim.Weights) && claim.Plan == c.Digest:
		return samePlan, nil
	case weights != nil && slices.Equal(weights, claim.Weights):
		return sameWeights, nil
	}
	if update, err := c.isUpdate(ctx, claim); err != nil || update {
		return otherWeights, err
	}
	if made, err := c.made(ctx, claim, files); err != nil || made {
		return sameWeights, err
	}
	return stranger, nil
}

// made reports whether every output that a journal lists was made from the weights of a local
// source, by any plan. No commit pins these weights. So the digests of the outputs decide: like a
// plan's digest, each covers a sample of every weight file.
func (c *Conversion) made(ctx context.Context, claim ledger.Claim, files contents) (bool, error) {
	if !c.From.Local || claim.Weights != nil {
		return false, nil
	}
	if len(claim.Outputs) == 0 {
		return len(claim.Others) == 0, nil
	}
	for path, o := range claim.Outputs {
		if now := c.Digests[path]; now == "" || o.Digest != now {
			return false, nil
		}
	}
	if claim.Prerelease { // its digests were translated
		return c.madeByPrerelease(ctx, claim, files)
	}
	return true, nil
}

// hashed returns the weight files of the source, or nil if the SHA-256 of any, or of any file of
// the claim, isn't known.
func (c *Conversion) hashed(ctx context.Context, claim ledger.Claim) ([]names.File, error) {
	unhashed := func(f names.File) bool { return f.SHA256 == "" }
	if claim.Weights == nil || slices.ContainsFunc(claim.Weights, unhashed) {
		return nil, nil
	}
	weights, err := c.From.Source.Weights(ctx)
	if err != nil || slices.ContainsFunc(weights, unhashed) {
		return nil, err
	}
	return weights, nil
}

// isUpdate reports whether a claim is of another commit of the same source. Without commits, two
// folders that name the same repo are two sources.
func (c *Conversion) isUpdate(ctx context.Context, claim ledger.Claim) (bool, error) {
	from := claim.Result.Source
	switch {
	case c.From.Repo == "" || c.From.Commit == "" || claim.Commit == "" && !claim.Prerelease:
		return false, nil
	case claim.Commit == c.From.Commit || from == c.From.Repo:
		return true, nil
	case from == "":
		return false, nil
	}
	name, err := c.From.Source.NameNow(ctx, from)
	return strings.EqualFold(name, c.From.Repo), err
}
