package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
)

// readerFlags are the flags of commands that read a DF11 model and its original.
type readerFlags struct {
	sourceFlags // of the original
	limitFlags
	against string
}

func (f *readerFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.against, "against", "",
		"the original `model`: Hub repo, folder or .safetensors file")
	f.limitFlags.register(p)
	f.sourceFlags.register(p, false)
}

// openLimited opens a DF11 model within the memory budget.
func (f *readerFlags) openLimited(ctx context.Context, u *ui, name string) (*model.DF11, error) {
	var err error
	if f.shares, err = f.divide(budget.ForReading); err != nil {
		return nil, err
	}
	applyMemory(f.shares)
	return f.openDF11(ctx, u, name)
}

// openDF11 opens a DF11 model: a file, a folder, or a Hub repo.
func (f *hubFlags) openDF11(ctx context.Context, u *ui, name string) (d *model.DF11, err error) {
	if err = unfinished(name); err != nil {
		return nil, err
	}
	if model.Exists(name) {
		d, err = model.OpenDF11Local(ctx, name, f.shares.Budget)
	} else {
		var c *hub.Client
		var repo, revision string
		if c, repo, revision, err = f.repo(u, "target", name); err != nil {
			return nil, err
		}
		d, err = model.OpenDF11Hub(ctx, c, repo, revision, f.shares.Budget, f.shares.Pieces)
	}
	if err != nil {
		return nil, hintSource(fmt.Errorf("open %s: %w", name, err), name)
	}
	return d, nil
}

// hintSource adds what to do if what was given as a DF11 model is none.
func hintSource(err error, name string) error {
	if !errors.Is(err, model.ErrNoDF11Config) {
		return err
	}
	return hinted{err,
		"give a DF11 model; to see what this one would become: df11-convert plan " +
			human.ShellWord(name)}
}

// errNoOriginal says that nothing tells what a DF11 model was made from.
var errNoOriginal = errors.New("has no manifest, and no README.md that names its base_model")

// unfinished gives an error for a folder that is the target of a conversion that has not ended.
func unfinished(folder string) error {
	// what cannot be read is nothing that we keep there
	entries, _ := os.ReadDir(filepath.Join(folder, names.StateDir))
	journal := func(e os.DirEntry) bool {
		return target.IsJournal(path.Join(names.StateDir, e.Name()))
	}
	if model.Exists(filepath.Join(folder, names.Config)) || !slices.ContainsFunc(entries,
		journal) {
		return nil
	}
	return hinted{fmt.Errorf("the conversion to %s has not ended", folder),
		"run the command that began it again: it resumes"}
}

// openOriginal opens the model that a DF11 model was made from, and plans it as the DF11 model
// shows that it was planned. Without --against it is the original that the DF11 model itself names:
// a repo, whatever folders are here.
func (f *readerFlags) openOriginal(ctx context.Context, u *ui, d *model.DF11) (*opened, error) {
	spec, open := f.against, f.openSource
	if spec == "" {
		repo, commit := d.Original()
		if repo == "" {
			return nil, fmt.Errorf("%s %w", d.Name, errNoOriginal)
		}
		if spec, open = repo, f.openRepo; commit != "" {
			spec += "@" + commit
		}
		u.say("the original is %s", spec)
	}
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	var o *opened
	for _, opt = range back.OriginalOptions(d, opt) {
		if o, err = open(ctx, u, spec, opt); !wraps[*plan.RefusedError](err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if o.plan, err = back.PlanOriginal(ctx, d, o.model.Listing, opt); err != nil {
		o.Close()
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// pair is a DF11 model with this original.
func (o *opened) pair(d *model.DF11) back.Pair {
	return back.Pair{DF11: d, Source: o.source, Model: o.model, Plan: o.plan}
}
