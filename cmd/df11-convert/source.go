package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// pushEndpoint is the variable that names the Hub with the DF11 models, where that is not the one
// that sources are read from.
const pushEndpoint = "DF11_PUSH_ENDPOINT"

// hubFlags say how a Hub is asked, on either side.
type hubFlags struct {
	limitRate sizeFlag
	shares    budget.Memory // of the memory; set by the command
	// used instead of the environment's, by the demo; nil otherwise
	instead *hub.Options
	clients map[string]*hub.Client // by side, for the next models of a batch; nil otherwise
}

// client makes a Hub client for a side, "source" or "target". Each side gets the whole share of
// memory for transfers: the source is read before its files are verified, outputs come back from
// the target meanwhile.
func (f *hubFlags) client(u *ui, side string) (*hub.Client, error) {
	if c := f.clients[side]; c != nil {
		return c, nil
	}
	opt, err := f.hubOptions(u, side)
	if err != nil {
		return nil, err
	}
	c, err := hub.New(opt)
	if err != nil {
		return nil, hinted{usageError{err},
			"correct the variable or file that says so; HF_ENDPOINT and " + pushEndpoint +
				" are addresses such as https://huggingface.co"}
	}
	if f.clients != nil {
		f.clients[side] = c
	}
	return c, nil
}

// repo takes a Hub id apart, into the repo and the revision if there is one, and makes the client
// that asks for it. Errors name the id.
func (f *hubFlags) repo(u *ui, side, id string) (c *hub.Client, repo, revision string, err error) {
	if id, err = repoID(id); err != nil {
		return nil, "", "", err
	}
	repo, revision, pinned := strings.Cut(id, "@")
	if pinned && revision == "" {
		return nil, "", "", usagef("%s: the revision behind @ is empty", id)
	}
	if names.CheckNewRepo(repo) != nil {
		return nil, "", "", notFound(id)
	}
	c, err = f.client(u, side)
	return c, repo, revision, err
}

// hubOptions are those of the environment, as Python reads it, and of the flags.
func (f *hubFlags) hubOptions(u *ui, side string) (hub.Options, error) {
	var opt hub.Options
	var err error
	if f.instead != nil {
		opt = *f.instead
	} else {
		opt, err = hub.Environ(os.Getenv, homeDir())
	}
	if to := strings.TrimRight(os.Getenv(pushEndpoint), "/"); to != "" && f.instead == nil {
		if side == "target" {
			opt.Endpoint = to
		} else if to != opt.Endpoint { // two hubs: the token is that of the one that is written to
			opt.Token, opt.TokenSource, opt.Login = "", "", "unset "+pushEndpoint+
				", which alone gets the token, convert into a folder, and publish that"
		}
	}
	if p := opt.Publisher; p != nil && p.ForRepo() != (side == "target") {
		// its token is for one repo to write to, or for a user to read: the other side has the
		// stored token
		opt.Publisher = nil
	}
	if err != nil {
		return opt, err
	}
	opt.Side, opt.UserAgent, opt.Log = side, "df11-convert/"+versionText(), u.log()
	opt.LimitRate = int64(f.limitRate)
	opt.RangeBytes, opt.BufferBytes = f.shares.RangeBytes, f.shares.AheadBytes
	opt.Governor, opt.OnWait = u.governor, func(w hub.Wait) {
		u.waits.add(w.For)
		u.say("waiting %s for %s: %s", max(time.Second, w.For.Round(time.Second)), opt.Endpoint,
			w.Reason)
	}
	return opt, nil
}

// homeDir is the home of the user. A service may have no HOME; what it reads as its own, token and
// cache included, must still not be what somebody else can put into the directory for temporary
// files, which all users share.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	if me, err := user.Current(); err == nil && me.HomeDir != "" {
		return me.HomeDir
	}
	return os.TempDir() // such as in a container whose user has no name
}

// sourceFlags say how a source is read and planned.
type sourceFlags struct {
	hubFlags
	plan        plan.Options // without layout and pattern dict, which planOptions parses
	layout      string
	patternDict string // a file
}

// register adds the flags. How a source is planned, a DF11 model or a list of models says better:
// help shows those flags where all serve.
func (f *sourceFlags) register(p *pflag.FlagSet, all bool) {
	p.StringVar(&f.patternDict, "pattern-dict", "",
		"JSON `file` with the pattern dict, instead of the catalog's")
	p.StringVar(&f.layout, "layout", "",
		"`layout` of the result: transformers, transformers-single, diffusers, diffusers-single or single (ComfyUI)")
	p.StringVar(&f.plan.Like, "like", "",
		"take the pattern dict of this `model`: a catalog entry or a published DF11 repo")
	p.StringVar(&f.plan.Component, "component", "",
		"`folder` of a diffusers pipeline to convert (default transformer, else unet)")
	p.StringVar(&f.plan.WeightFile, "file", "",
		"the one .safetensors `file` of the repo to convert, where it holds several models")
	p.BoolVar(&f.plan.ExactF32, "exact-f32", false,
		"take F32 weights that are exactly BF16; every value is checked")
	p.Var(&f.limitRate, "limit-rate", "bytes per second in each direction, e.g. 50MB")
	for _, name := range []string{"pattern-dict", "layout", "like", "exact-f32"} {
		p.Lookup(name).Hidden = !all
	}
}

func (f *sourceFlags) planOptions() (plan.Options, error) {
	opt := f.plan
	layout, err := catalog.ParseLayout(f.layout)
	if err != nil {
		return opt, usageError{err}
	}
	opt.Layout = layout
	if opt.Like, err = repoID(opt.Like); err != nil {
		return opt, err
	}
	if f.patternDict == "" {
		return opt, nil
	}
	b, err := disk.ReadInput(f.patternDict, catalog.MaxDictBytes)
	if err != nil {
		return opt, fmt.Errorf("pattern dict: %w", err)
	}
	if opt.PatternDict, err = catalog.ParsePatternDict(b); err != nil {
		return opt, fmt.Errorf("pattern dict %s: %w", f.patternDict, err)
	}
	return opt, nil
}

// opened is a source with its plan. openSource leaves the plan to its caller.
type opened struct {
	source model.Source
	model  *model.Model
	plan   *plan.Plan
}

func (o *opened) Close() error { return o.source.Close() }

// open reads what the plan needs of a source and makes the plan.
func (f *sourceFlags) open(ctx context.Context, u *ui, spec string) (*opened, error) {
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	o, err := f.openSource(ctx, u, spec, opt)
	if err != nil {
		return nil, err
	}
	if o.plan, err = plan.New(ctx, o.model.Listing, opt); err == nil {
		err = o.model.CheckCopies(o.plan)
	}
	if err != nil {
		budget.HintF32(ctx, o.source, o.model, opt, err)
		o.Close()
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// openSource reads what a plan needs of a source: a folder, a file, or a Hub repo.
func (f *sourceFlags) openSource(ctx context.Context, u *ui, spec string,
	opt plan.Options) (*opened, error) {
	if err := unfinished(spec); err != nil {
		return nil, err
	}
	if !model.Exists(spec) {
		return f.openRepo(ctx, u, spec, opt)
	}
	o := &opened{}
	var err error
	if o.source, o.model, err = model.OpenLocal(ctx, spec, opt); err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// openRepo is openSource for a Hub id, which is one even if a folder has that name.
func (f *sourceFlags) openRepo(ctx context.Context, u *ui, spec string,
	opt plan.Options) (*opened, error) {
	o := &opened{}
	c, repo, revision, err := f.repo(u, "source", spec)
	if err != nil {
		return nil, err
	}
	switch o.source, o.model, err = model.OpenHub(ctx, c, repo, revision, opt); {
	case wraps[*hub.Error](err): // which names the source
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}
