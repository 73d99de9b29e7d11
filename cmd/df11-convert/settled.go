package main

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// settled returns the target's state if it already holds everything that a run would publish. It
// needs no plan. In doubt, and after an error, it returns nil, because the run that follows finds
// out more.
func (f *convertFlags) settled(ctx context.Context, u *ui, spec string) *publish.Settled {
	opt, err := f.planOptions()
	if err != nil || !f.target.push || f.target.out != "" || f.target.force || f.parts.which != "" ||
		!f.listed && model.Exists(spec) {
		return nil
	}
	c, repo, revision, err := f.repo(u, "source", spec)
	if err != nil {
		return nil
	}
	source, err := c.Peek(ctx, repo, revision)
	if err != nil {
		return nil
	}
	push, err := f.push(ctx, u, model.NameOf(repo, source))
	if err != nil {
		return nil
	}
	return push.Settled(ctx, source, c.Endpoint(), opt.Asked())
}
