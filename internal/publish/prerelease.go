package publish

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
)

// Results that programs from before the first release began or finished are taken over. Their
// journals name no commit, no result, and no digests of outputs; some manifests have no digests
// either; and the remainder had another name. internal/convert/testdata/rounds has what they left.
//
// The files prerelease.go of this package and of ledger, plan, and convert do all of that. To stop
// taking these results over, delete them and what no longer compiles, and with that
// [ledger.Output].From.

// translate returns a claim by an earlier program as this program would write it: with digests, and
// with the present names of outputs.
func (c *Conversion) translate(ctx context.Context, claim ledger.Claim) (ledger.Claim, error) {
	digested := false
	for _, o := range claim.Outputs {
		digested = digested || o.Digest != ""
	}
	claim.Outputs = maps.Clone(claim.Outputs)
	for path, was := range c.prerelease {
		o, listed := claim.Outputs[was.Path]
		if _, has := claim.Outputs[path]; has || !listed || digested && o.Digest != was.Digest {
			continue
		}
		o.Path, o.From, o.Digest = path, was.Path, ""
		if digested {
			o.Digest = c.Digests[path]
		}
		delete(claim.Outputs, was.Path)
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

// madeByPrerelease compares the outputs of a journal without digests that are still there with a
// local source, bit for bit.
func (c *Conversion) madeByPrerelease(ctx context.Context, claim ledger.Claim,
	files contents) (bool, error) {
	var listed []ledger.Output
	for _, o := range claim.Outputs {
		if version, err := files.version(o.Stored().Path); err != nil {
			return false, err
		} else if version != "" {
			listed = append(listed, o)
		}
	}
	return c.From.Source.Made(ctx, listed, files.open)
}

// An Opener opens outputs for reading, and keeps at most pieces bytes of a repo's in memory.
type Opener = func(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11, error)

// Made returns false: a journal of a repo's conversion is an update by its source's name alone.
func (listedSource) Made(context.Context, []ledger.Output, Opener) (bool, error) { return false, nil }

// open opens outputs by path, before the run knows their versions.
func (f *Folder) open(ctx context.Context, outputs []ledger.Output, _ int64) (*model.DF11, error) {
	var refs []hub.FileRef
	for _, o := range outputs {
		refs = append(refs, hub.FileRef{Path: o.Stored().Path, Size: o.Size})
	}
	here := func(name string) (*os.File, error) { return f.disk.Root.Open(f.pathOf(name)) }
	return model.OpenOutputs(ctx, refs, here, nil, 0)
}

func (c commit) open(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11,
	error) {
	var refs []hub.FileRef
	for _, o := range outputs {
		refs = append(refs, c.files[o.Stored().Path].Ref(c.push.Repo, c.id))
	}
	none := func(string) (*os.File, error) { return nil, os.ErrNotExist }
	return model.OpenOutputs(ctx, refs, none, c.push.Hub, pieces)
}

// rename gives the outputs that lie under other names in the folder their own. In a repo, the first
// commit that lists them does.
func (f *Folder) rename() error {
	for _, o := range f.ledger.Outputs() {
		if !o.Here || o.From == "" {
			continue
		}
		if !f.in.Holds(o.File()) { // else the last run was stopped here
			if err := f.disk.Rename(f.pathOf(o.From), f.pathOf(o.Path)); err != nil {
				return err
			}
		}
		if err := f.ledger.Renamed(o.Path); err != nil {
			return err
		}
	}
	return nil
}
