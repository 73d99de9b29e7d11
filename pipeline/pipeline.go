package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/target"
)

// Run converts a model. When it returns nil, the folder and the repo are complete, and every output
// was verified against the source, unless the report says that all of it was there and nothing was
// looked at. After an error the same call goes on where this one stopped. Work that is cancelled
// ends with the context's cause.
func Run(ctx context.Context, opt Options) (*Report, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	start := time.Now()
	report, err := runOnce(ctx, opt)
	for try := 1; errors.Is(err, target.ErrBranchGone) && try < branchTries &&
		ctx.Err() == nil; try++ {
		opt.Log.Warn("the branch that prepares the target was removed, looking at the target again",
			"repo", opt.Push.Repo)
		report, err = runOnce(ctx, opt)
	}
	if report != nil {
		report.Seconds, report.Stages = time.Since(start).Seconds(), opt.Progress.Stages()
	}
	return report, err
}

// branchTries bounds how often a run begins again because its branch was removed. Mostly another
// machine was quicker, and once is enough.
const branchTries = 3

// runOnce makes what the targets lack.
func runOnce(ctx context.Context, opt Options) (*Report, error) {
	c, err := prepare(ctx, opt)
	if err != nil {
		return nil, err
	}
	report, err := c.run(ctx)
	return report, errors.Join(err, c.close(err == nil))
}

// run makes every output and verifies every source file, then finishes. Of what is finished it
// changes nothing.
func (c *conversion) run(ctx context.Context) (*Report, error) {
	if report, err := c.upToDate(ctx); report != nil || err != nil {
		return report, err
	}
	c.Progress.SetPhase("convert")
	if err := c.convertAndRebuild(ctx); err != nil {
		return nil, err
	}
	if !c.Part.Whole() {
		return c.report(), nil
	}
	c.Progress.SetPhase("finish")
	return c.finish(ctx)
}

// convertAndRebuild makes outputs until all of them are done and every source file is known to be
// the published one. What came from a source file that is not is made again, and so are outputs
// that the target's store has lost.
func (c *conversion) convertAndRebuild(ctx context.Context) error {
	retry := retry{c: c, reads: map[string]int{}}
	for {
		err := c.convert(ctx)
		if err == nil && c.Part.Whole() {
			c.Progress.SetPhase("rebuild")
			err = c.rebuildUnchecked(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := retry.after(ctx, err); err != nil {
			return err
		}
		c.Progress.SetPhase("convert")
	}
}

// convert makes every output that is not done.
func (c *conversion) convert(ctx context.Context) error {
	work, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer c.leaveSpools(work.Fetcher)
	if err := work.Run(ctx); err != nil {
		return err
	}
	return c.checkGain()
}

// finish writes what lies beside the weights and completes every target, config.json last.
func (c *conversion) finish(ctx context.Context) (*Report, error) {
	report, err := c.complete(ctx)
	if errors.Is(err, hub.ErrMissingObject) && !c.sendAll {
		c.sendAll = true // a copy that the Hub promised is not there
		report, err = c.complete(ctx)
	}
	if err == nil {
		c.removeBranches(ctx)
	}
	return report, err
}

// removeBranches removes what work has left in a repo that is finished.
func (c *conversion) removeBranches(ctx context.Context) {
	if c.repo == nil {
		return
	}
	if err := c.repo.RemoveBranches(ctx); err != nil {
		c.Log.Warn("the target is complete, but branches of unfinished work are left there", "err",
			err)
	}
}
