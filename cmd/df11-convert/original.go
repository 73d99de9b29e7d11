package main

import (
	"context"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// prove compares a local source with the repo of --original. Offline, nothing is compared, and so
// nothing is claimed. Without the flag, it says what a result of unknown origin lacks.
func (f *convertFlags) prove(ctx context.Context, u *ui, src *opened) error {
	repo := f.target.original
	switch {
	case repo != "" && !src.model.Local:
		return hinted{usagef("--original %s: the source is %s itself", repo, src.model.ID),
			"leave --original out"}
	case repo == "" && src.model.Local && f.target.push:
		u.say("%s", unproved)
	}
	if repo == "" {
		return nil
	}
	repo, revision, _ := strings.Cut(repo, "@")
	c, err := f.client(u, "source")
	if err != nil {
		return err
	}
	if c.Offline() {
		u.log().Warn("not compared with " + repo + ", because HF_HUB_OFFLINE is set, so the card doesn't name it")
		return nil
	}
	opt, err := f.planOptions()
	if err != nil {
		return err
	}
	u.say("comparing %s with %s, by SHA-256", human.Bytes(src.plan.SourceBytes()), repo)
	return src.model.Prove(ctx, src.source, c, repo, revision, opt, f.shares.Workers)
}

// unproved says what readers can't do with the result of a local source.
const unproved = "readers can't verify the result without the files of this source; if it's a copy of " +
	"a Hub repo, add --original org/name, else upload it first and convert that"

// notOriginalHint says what to do about a [model.NotOriginalError].
const notOriginalHint = "leave --original out; if you trained from that model, name it as base_model " +
	"in the source's README.md: the card then says so"
