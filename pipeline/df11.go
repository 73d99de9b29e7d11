package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// openDF11 opens a DF11 model: a file, a folder, or a Hub repo.
func (s *session) openDF11(ctx context.Context, name string) (d *model.DF11, err error) {
	if err = unfinished(name); err != nil {
		return nil, err
	}
	if model.Exists(name) {
		d, err = model.OpenDF11Local(ctx, name, s.shares.Budget)
	} else {
		var c *hub.Client
		var repo, revision string
		if c, repo, revision, err = s.repo("target", name); err != nil {
			return nil, err
		}
		d, err = model.OpenDF11Hub(ctx, c, repo, revision, s.shares.Budget, s.shares.Pieces)
		if errors.Is(err, hub.ErrNotFound) {
			err = hintPath(err, name)
		}
	}
	if oneOf(model.ErrNoDF11Config, model.ErrUnfinished, model.ErrEmpty)(err) {
		return nil, hintSource(fmt.Errorf("%s: %w", name, err), name)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return d, nil
}

// hintSource adds a hint to the error about a model that isn't DF11.
func hintSource(err error, name string) error {
	switch {
	case errors.Is(err, model.ErrFirstFormat):
		return hint.On(err, hint.OldDF11)
	case !errors.Is(err, model.ErrNoDF11Config):
		return err
	}
	if inside, ok := errors.AsType[*model.InsideError](err); ok && model.Exists(name) {
		return hint.On(err, hint.InsideDF11.With("folder", filepath.Join(name, inside.Dir)))
	}
	return hint.On(err, hint.NotDF11.With("model", name))
}

// errNoOriginal reports that a DF11 model doesn't name its original.
var errNoOriginal = errors.New("doesn't name its original")

// errNotHere says that the original that a model names can't be read without a network.
var errNotHere = errors.New("nothing was compared with its original")

// noOriginal says why d doesn't name its original.
func noOriginal(d *model.DF11) error {
	_, hasCard := d.File(names.Card)
	var why string
	switch {
	case d.IsFile():
		why = "it's one file, without a manifest or a card"
	case d.Manifest != nil && hasCard:
		why = "neither its manifest nor its card names a repo"
	case d.Manifest != nil:
		why = "its manifest names no repo, and it has no card"
	case hasCard:
		why = "its card names no repo, and it has no manifest"
	default:
		why = "it has no manifest and no card"
	}
	err := fmt.Errorf("%s %w: %s", d.Name, errNoOriginal, why)
	folder := filepath.Dir(d.Name)
	if d.IsFile() && model.Exists(filepath.Join(folder, names.Manifest)) {
		return hint.On(err, hint.FolderHasOne.With("folder", folder))
	}
	return hint.On(err, hint.NoOriginal)
}

// wholeModel returns an error for one file of a DF11 model in a folder, unless its loader is
// ComfyUI, which opens files. Alone it lacks the config.json that is next to it, and the other
// files.
func (o *opened) wholeModel(d *model.DF11) error {
	pair := back.Checker{Pair: o.pair(d)}
	if !d.IsFile() || pair.Layout() == catalog.ComfyUI {
		return nil
	}
	folder := filepath.Dir(d.Name)
	config, err := disk.Read(filepath.Join(folder, names.Config), maxConfig)
	if err == nil {
		_, err = model.ParseConfig(config)
	}
	if err != nil {
		return nil //nolint:nilerr // what's next to it isn't a DF11 model
	}
	return hint.On(usage.Errorf("%s is one file of the model in %s", d.Name, folder),
		hint.WholeFolder.With("folder", folder))
}

// maxConfig bounds the config.json that wholeModel reads.
const maxConfig = 8 << 20

// unfinished returns an error for a folder whose conversion hasn't ended, and nil otherwise.
func unfinished(folder string) error {
	// We can read what we keep there, so ignore the error.
	entries, _ := os.ReadDir(filepath.Join(folder, names.StateDir))
	journal := func(e os.DirEntry) bool {
		return names.IsJournal(path.Join(names.StateDir, e.Name()))
	}
	if model.Exists(filepath.Join(folder, names.Config)) || !slices.ContainsFunc(entries,
		journal) {
		return nil
	}
	return hint.On(fmt.Errorf("the conversion to %s hasn't ended", folder),
		hint.Unfinished)
}

// openOriginal opens the model that a DF11 model was made from, and plans it the way the DF11 model
// shows. Without --against it opens the original that the DF11 model names. That's always a repo,
// and so is any org/name after --against, even if a folder has that name.
func (s *session) openOriginal(ctx context.Context, d *model.DF11, against string,
	recipe Recipe) (*opened, error) {
	spec, onHub := against, true
	switch {
	case spec == "":
		repo, commit := d.Original()
		if repo == "" {
			return nil, noOriginal(d)
		}
		if spec = repo; commit != "" {
			spec += "@" + commit
		}
		s.say("the original is %s", spec)
	case address.OnHub(spec):
	default:
		onHub = false
		if err := refuseOwn(d, spec); err != nil {
			return nil, err
		}
	}
	opt, err := s.planOptions(ctx, recipe)
	if err != nil {
		return nil, err
	}
	if made := d.Layout(); opt.Layout != "" && made != "" && string(opt.Layout) != made {
		return nil, usage.Errorf("--layout %s: %s has the layout %s", opt.Layout.Name(), d.Name,
			catalog.Layout(made).Name())
	}
	o, opt, err := s.openFirst(ctx, spec, back.OriginalOptions(d, opt), onHub)
	if err != nil {
		if against == "" && errors.Is(err, hub.ErrNotFound) { // you didn't spell it
			repo, _ := d.Original()
			return nil, hint.On(fmt.Errorf("the original that %s names: %w", d.Name, err),
				hint.GoneOriginal.With("repo", repo, "model", d.Name))
		}
		if isDF11(err) {
			err = hint.On(err, hint.OtherOriginal)
		}
		if recipe.File+recipe.Component+recipe.Like == "" && wraps[*plan.RefusedError](err) {
			err = &unlike{err}
		}
		return nil, err
	}
	if o.model.From != nil {
		opt.Component = "" // that choice is made
	}
	if err := o.planAs(ctx, d, opt); err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	if err := o.wholeModel(d); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if d.Manifest != nil || d.Dir != "" || opt.Component != "" {
		return o, nil
	}
	return s.closest(ctx, o, d, spec, opt, onHub)
}

// openFirst opens an original with the first options that don't refuse it, and returns these. If
// all do, the error is that of the first ones.
func (s *session) openFirst(ctx context.Context, spec string, options []plan.Options,
	onHub bool) (*opened, plan.Options, error) {
	var refused error
	for _, opt := range options {
		o, err := s.openArranged(ctx, spec, opt, onHub)
		if !wraps[*plan.RefusedError](err) {
			return o, opt, err
		}
		refused = cmp.Or(refused, err)
	}
	return nil, plan.Options{}, refused
}

// closest returns the part of a pipeline that d is most likely made from: o, or one of the other
// parts that have the same class. It closes the others.
func (s *session) closest(ctx context.Context, o *opened, d *model.DF11, spec string,
	opt plan.Options, onHub bool) (*opened, error) {
	for _, component := range plan.Twins(&o.model.Listing) {
		opt.Component = component
		twin, err := s.openArranged(ctx, spec, opt, onHub)
		if wraps[*plan.RefusedError](err) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		if o, err = o.closer(ctx, d, twin, opt); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
	}
	return o, nil
}

// unlike says that an original lacks what the DF11 model names of it, which the user didn't.
type unlike struct{ error }

func (u *unlike) Unwrap() error { return u.error }

// planAs plans an original the way d shows. On an error it closes the original.
func (o *opened) planAs(ctx context.Context, d *model.DF11, opt plan.Options) (err error) {
	o.plan, err = back.PlanOriginal(ctx, d, o.model.Listing, opt)
	if wraps[*plan.RefusedError](err) {
		o.refused, err = err, nil
	}
	if err != nil {
		o.Close()
	}
	return err
}

// closer returns the one of two originals, parts of one pipeline, that shares more copied tensors
// with d, and closes the other. Nothing in a model without a manifest says which part it is.
func (o *opened) closer(ctx context.Context, d *model.DF11, twin *opened,
	opt plan.Options) (*opened, error) {
	if err := twin.planAs(ctx, d, opt); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	n := [2]int{}
	for i, one := range []*opened{o, twin} {
		if one.plan == nil {
			continue
		}
		var err error
		if n[i], _, err = one.pair(d).Samples(ctx); err != nil {
			return nil, errors.Join(err, o.Close(), twin.Close())
		}
	}
	if n[1] > n[0] {
		o, twin = twin, o
	}
	return o, twin.Close()
}

// refuseOwn refuses a local original that's part of the DF11 model.
func refuseOwn(d *model.DF11, spec string) error {
	own, err := back.BringsAlong(d, spec)
	if err != nil || !own {
		return err
	}
	return hint.On(usage.Errorf("--against %s: that's in %s itself", spec, d.Name),
		hint.OwnOriginal)
}

// pair returns a DF11 model with this original.
func (o *opened) pair(d *model.DF11) back.Pair {
	return back.Pair{DF11: d, Source: o.source, Model: o.model, Plan: o.plan, Refused: o.refused}
}
