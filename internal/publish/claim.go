package publish

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
)

// OriginOf returns the origin of a repo's weights.
func OriginOf(m *model.Model) Origin {
	weights := func(context.Context) (list []names.File, err error) {
		for _, f := range m.Files() {
			list = append(list, names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256})
		}
		return list, nil
	}
	return Origin{Repo: m.ID, Commit: m.Commit, Leads: m.Leads, Weights: weights}
}

// An author is what is known about the run that made a claim, a journal or a manifest.
type author int

const (
	unknown  author = iota // the file says nothing
	stranger               // made another result
	former                 // made this result of other weights, or of weights that aren't known
	equal                  // made this result of these very weights, by another plan
	same                   // followed this plan, for these weights
)

// author says who made a claim. A result is the same one if the source's weights, the layout, the
// component, and the dict are the same, by their values. So is an update of it: what another commit
// of the same source makes. A manifest lists the SHA-256 of its weights. A journal doesn't: what its
// plan made of other weights is found out before the result counts (pipeline/rebuild.go).
func (w *Owner) author(ctx context.Context, c ledger.Claim) (author, error) {
	if c.Plan == "" {
		return unknown, nil
	}
	if c.Result.Contradicts(w.identity) {
		return stranger, nil
	}
	weights, err := w.hashed(ctx, c)
	switch {
	case err != nil:
		return unknown, err
	case weights == nil && c.Plan == w.Digest:
		return same, nil
	case weights != nil && slices.Equal(weights, c.Weights) && c.Plan == w.Digest:
		return same, nil
	case weights != nil && slices.Equal(weights, c.Weights):
		return equal, nil
	}
	update, err := w.isUpdate(ctx, c)
	if err != nil || !update {
		return stranger, err
	}
	return former, nil
}

// hashed returns the weight files of the source, or nil if they or those of a claim can't be compared
// by their SHA-256.
func (w *Owner) hashed(ctx context.Context, c ledger.Claim) ([]names.File, error) {
	unhashed := func(f names.File) bool { return f.SHA256 == "" }
	if w.Weights == nil || c.Weights == nil || slices.ContainsFunc(c.Weights, unhashed) {
		return nil, nil
	}
	weights, err := w.Weights(ctx)
	if err != nil || slices.ContainsFunc(weights, unhashed) {
		return nil, err
	}
	return weights, nil
}

// isUpdate reports whether a claim is of another commit of the same source. Without commits, two
// folders that name the same repo are two sources.
func (w *Owner) isUpdate(ctx context.Context, c ledger.Claim) (bool, error) {
	from := c.Result.Source
	switch {
	case w.Repo == "" || w.Commit == "" || c.Commit == "" && !c.Early:
		return false, nil
	case c.Commit == w.Commit || from == w.Repo:
		return true, nil
	case from == "" || w.Leads == nil:
		return false, nil
	}
	name, err := w.Leads(ctx, from)
	return strings.EqualFold(name, w.Repo), err
}

// translate returns a claim by an earlier program as this one makes it: with the digests that early
// programs didn't write, and with outputs of former names, which may get their present ones.
func (w *Owner) translate(ctx context.Context, c ledger.Claim) (ledger.Claim, error) {
	digested := false
	for _, o := range c.Outputs {
		digested = digested || o.Digest != ""
	}
	for path, was := range w.former {
		o, listed := c.Outputs[was.Path]
		if _, has := c.Outputs[path]; has || !listed || digested && o.Digest != was.Digest {
			continue
		}
		o.Path, o.From, o.Digest = path, was.Path, ""
		if digested {
			o.Digest = w.Digests[path]
		}
		c.Outputs = maps.Clone(c.Outputs)
		c.Outputs[path] = o
	}
	if digested {
		return c, nil
	}
	weights, err := w.hashed(ctx, c)
	if err != nil || weights == nil && c.Weights != nil {
		return c, err
	}
	differs := func(file int) bool {
		return weights != nil && !slices.Contains(c.Weights, weights[file])
	}
	c.Outputs = maps.Clone(c.Outputs)
	for path, o := range c.Outputs {
		// the same source files make the same output; if the claim doesn't list them, the run
		// compares the output with its source in the end
		if !slices.ContainsFunc(w.sources[path], differs) {
			o.Digest = w.Digests[path]
			c.Outputs[path] = o
		}
	}
	return c, nil
}
