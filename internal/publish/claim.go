package publish

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An author is what is known about the run that made a claim, a journal or a manifest.
type author int

const (
	unknown  author = iota // the file says nothing
	stranger               // made another result
	former                 // made this result from other weights, or from weights that aren't known
	equal                  // made this result from these very weights, by another plan
	same                   // followed this plan, for these weights
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
		return same, nil
	case weights != nil && slices.Equal(weights, claim.Weights) && claim.Plan == c.Digest:
		return same, nil
	case weights != nil && slices.Equal(weights, claim.Weights):
		return equal, nil
	}
	if update, err := c.isUpdate(ctx, claim); err != nil || update {
		return former, err
	}
	if made, err := c.made(ctx, claim, files); err != nil || made {
		return equal, err
	}
	return stranger, nil
}

// made reports whether every output that a journal lists, and that is still there, was made from
// the weights of a local source, by any plan. No commit pins these weights. So the digests of the
// outputs decide: like a plan's digest, each covers a sample of every weight file. Early programs
// wrote no digests; then the outputs themselves are compared, bit for bit.
func (c *Conversion) made(ctx context.Context, claim ledger.Claim, files contents) (bool, error) {
	if !c.From.Local || claim.Weights != nil {
		return false, nil
	}
	if len(claim.Outputs) == 0 {
		return len(claim.Others) == 0, nil
	}
	var listed []ledger.Output
	for path, o := range claim.Outputs {
		if path != o.Path || c.isFormer(path, claim) {
			continue // it's listed under its present name, too
		}
		if now := c.Digests[path]; now == "" || o.Digest != now {
			return false, nil
		}
		if version, err := files.version(o.Stored().Path); err != nil {
			return false, err
		} else if version != "" {
			listed = append(listed, o)
		}
	}
	if !claim.Early {
		return true, nil
	}
	return c.From.Source.Made(ctx, listed, files.open)
}

// isFormer reports whether a path is the former name of an output that a claim lists under its
// present one.
func (c *Conversion) isFormer(path string, claim ledger.Claim) bool {
	for now, was := range c.former {
		if o, listed := claim.Outputs[now]; was.Path == path && listed && o.From == path {
			return true
		}
	}
	return false
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
	case c.From.Repo == "" || c.From.Commit == "" || claim.Commit == "" && !claim.Early:
		return false, nil
	case claim.Commit == c.From.Commit || from == c.From.Repo:
		return true, nil
	case from == "":
		return false, nil
	}
	name, err := c.From.Source.NameNow(ctx, from)
	return strings.EqualFold(name, c.From.Repo), err
}

// translate returns a claim by an earlier program as this program would write it: with digests,
// which early programs left out, and with the present names of outputs.
func (c *Conversion) translate(ctx context.Context, claim ledger.Claim) (ledger.Claim, error) {
	digested := false
	for _, o := range claim.Outputs {
		digested = digested || o.Digest != ""
	}
	for path, was := range c.former {
		o, listed := claim.Outputs[was.Path]
		if _, has := claim.Outputs[path]; has || !listed || digested && o.Digest != was.Digest {
			continue
		}
		o.Path, o.From, o.Digest = path, was.Path, ""
		if digested {
			o.Digest = c.Digests[path]
		}
		claim.Outputs = maps.Clone(claim.Outputs)
		claim.Outputs[path] = o
	}
	if digested {
		return claim, nil
	}
	weights, err := c.hashed(ctx, claim)
	if err != nil || weights == nil && claim.Weights != nil {
		return claim, err
	}
	differs := func(file int) bool {
		return weights != nil && !slices.Contains(claim.Weights, weights[file])
	}
	claim.Outputs = maps.Clone(claim.Outputs)
	for path, o := range claim.Outputs {
		// the same source files make the same output; if the claim doesn't list them, the run
		// compares the output with its source in the end
		if !slices.ContainsFunc(c.sources[path], differs) {
			o.Digest = c.Digests[path]
			claim.Outputs[path] = o
		}
	}
	return claim, nil
}
