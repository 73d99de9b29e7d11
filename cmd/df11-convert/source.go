package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// pushEndpoint is the variable that names the Hub for DF11 models, if it isn't the sources' Hub.
const pushEndpoint = "DF11_PUSH_ENDPOINT"

// hubFlags say how to talk to the Hub of the source and the Hub of the target.
type hubFlags struct {
	limitRate sizeFlag
	shares    budget.Memory          // of the memory; set by the command
	instead   *hub.Options           // the demo's; nil is the environment's
	clients   map[string]*hub.Client // by side
}

// means returns what a command works with.
func (f *hubFlags) means() forward.Means {
	return forward.Means{Workers: f.shares.Workers, Progress: new(progress.Counters)}
}

// client returns the Hub client of a side, "source" or "target". Each side may use
// the whole share of memory for transfers.
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
		return nil, hinted{usageError{err}, fixOptions(err, side)}
	}
	if f.clients == nil {
		f.clients = map[string]*hub.Client{}
	}
	f.clients[side] = c
	return c, nil
}

// fixOptions says which setting of the user's a client can't use, and how to write it.
func fixOptions(err error, side string) string {
	e, ok := errors.AsType[*hub.EndpointError](err)
	if !ok {
		return "set it to the token alone, such as hf_…, without spaces or quotes"
	}
	variable := "HF_ENDPOINT"
	if side == "target" && os.Getenv(pushEndpoint) != "" {
		variable = pushEndpoint
	}
	if strings.Contains(e.Endpoint, "://") || strings.ContainsAny(e.Endpoint, " @") {
		return "set " + variable + " to an address such as https://huggingface.co, or unset it"
	}
	return "write it with its scheme: " + variable + "=https://" + e.Endpoint + ", or http://"
}

// repo splits a Hub id into repo and revision ("" if it has none), and returns the client for it.
// Errors name the id.
func (f *hubFlags) repo(u *ui, side, id string) (c *hub.Client, repo, revision string, err error) {
	a, err := parseAddress(id)
	if err != nil {
		return nil, "", "", err
	}
	if names.CheckNewRepo(a.repo) != nil {
		return nil, "", "", notFound(a.id())
	}
	c, err = f.client(u, side)
	return c, a.repo, a.revision, err
}

// hubOptions returns the options of a side, from the flags and from the environment, which it reads
// as Python does.
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
		} else if to != opt.Endpoint { // with two Hubs, only the target's gets the token
			opt.TokenFile = ""
			opt.Token, opt.TokenSource, opt.Login = "", "", "unset "+pushEndpoint+
				", which alone gets the token, convert into a folder, and publish that"
		}
	}
	if p := opt.Publisher; p != nil && p.ForRepo() != (side == "target") {
		// Its token is only for writing to one repo, or only for reading as a user.
		// The other side uses the stored token.
		opt.Publisher = nil
	}
	if err != nil {
		return opt, err
	}
	opt.Side, opt.UserAgent, opt.Log = side, "df11-convert/"+versionText(), u.log()
	opt.LimitRate, opt.Patience = int64(f.limitRate), patience
	opt.RangeBytes, opt.BufferBytes = f.shares.RangeBytes, f.shares.AheadBytes
	opt.Governor, opt.OnWait = u.governor, func(w hub.Wait) {
		u.say("waiting %s for %s: %s", max(time.Second, w.For.Round(time.Second)), w.Host,
			w.Reason)
	}
	return opt, nil
}

// homeDir returns the user's home. Without HOME, as in some services, it asks the user database.
// The shared folder for temporary files is the last resort, because other users could put a token
// or a cache there.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	if me, err := user.Current(); err == nil && me.HomeDir != "" {
		return me.HomeDir
	}
	return os.TempDir() // as in a container whose user has no name
}

// sourceFlags choose how a source is read and planned.
type sourceFlags struct {
	hubFlags
	plan        plan.Options // planOptions adds layout and pattern dict
	layout      string
	patternDict string // a file
	listed      bool   // one of a list's models: on the Hub, and in a --work-dir that others share
}

// register adds the flags. Unless all is set, help hides the flags of planning, because a DF11
// model or a list of models already says how a source is planned.
func (f *sourceFlags) register(p *pflag.FlagSet, all bool) {
	p.StringVar(&f.patternDict, "pattern-dict", "",
		"JSON `file` with the pattern dict (default the catalog's)")
	p.StringVar(&f.layout, "layout", "",
		"`layout` of the result: transformers[-single], diffusers[-single], or single for ComfyUI (default the source's)")
	p.StringVar(&f.plan.Like, "like", "",
		"use the pattern dict of this `model`: a catalog entry, or the DF11 repo that it comes from")
	p.StringVar(&f.plan.Component, "component", "",
		choose(all, "`folder` of a diffusers pipeline to convert (default transformer, else unet)",
			"the original's `folder`, if it's a diffusers pipeline (default transformer, else unet)"))
	p.StringVar(&f.plan.WeightFile, "file", "",
		choose(all, "the .safetensors `file` or the index to convert, if the source holds several models",
			"the original's .safetensors `file` or index, if it holds several models"))
	p.BoolVar(&f.plan.ExactF32, "exact-f32", false,
		"accept F32 weights whose values are all exact in BF16")
	p.BoolVar(&f.plan.Unfilled, "unfilled", false,
		"accept modules that no known reader fills")
	p.StringVar(&f.plan.For, "for", "",
		"compress only what this `reader` loads: dfloat11 (default the smallest that any loads)")
	if all {
		p.StringArrayVar(&f.plan.Include, "include", nil,
			"also copy a folder's files that match this `glob`; repeatable (default what a model's readers open)")
	}
	p.Var(&f.limitRate, "limit-rate", "limit per direction, e.g. 50MB/s (default none)")
	for _, name := range []string{"pattern-dict", "layout", "like", "exact-f32", "unfilled", "for"} {
		p.Lookup(name).Hidden = !all
	}
}

func (f *sourceFlags) planOptions() (plan.Options, error) {
	opt := f.plan
	opt.Memory = f.shares.Tables
	layout, err := catalog.ParseLayout(f.layout)
	if err != nil {
		return opt, usageError{err}
	}
	opt.Layout = layout
	if opt.Like, err = repoID(opt.Like); err != nil {
		return opt, err
	}
	if opt.For != "" && opt.For != plan.OfficialReader {
		return opt, usagef("--for: only %s can be named; without it, the result is for df11",
			plan.OfficialReader)
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

// opened is a source with its plan. openSource leaves the plan nil.
type opened struct {
	source model.Source
	model  *model.Model
	plan   *plan.Plan
	// refused says why an original can't be planned with the dict of a DF11 model; plan is nil then.
	refused error
	asked   string // plan.Options.Asked
	// what a plan for the official loader would make, if it differs; only the command plan asks
	official *alternative
}

func (o *opened) Close() error { return o.source.Close() }

// open reads a source's headers and small files, and makes the plan.
func (f *sourceFlags) open(ctx context.Context, u *ui, spec string) (*opened, error) {
	if err := f.takeFile(spec); err != nil {
		return nil, err
	}
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	o, err := f.openSource(ctx, u, spec, opt)
	if err != nil {
		return nil, err
	}
	if o.plan, err = plan.New(ctx, o.model.Listing, opt); err == nil {
		o.asked, err = opt.Asked(), cmp.Or(checkIncluded(o, opt.Include), o.model.CheckCopies(o.plan))
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// takeFile sets --file, if it isn't set, from the address of a file in a repo.
func (f *sourceFlags) takeFile(spec string) error {
	if !f.listed && model.Exists(spec) {
		return nil
	}
	a, err := parseAddress(spec)
	f.plan.WeightFile = cmp.Or(f.plan.WeightFile, a.file)
	return err
}

// planOfficial finds what a plan for the official loader would make, unless the plan is for it. It
// leaves it nil if that loader can't load the model.
func (f *sourceFlags) planOfficial(ctx context.Context, o *opened) error {
	opt, err := f.planOptions()
	if err != nil || !o.plan.HoldsParameters() || opt.PatternDict != nil {
		return err
	}
	opt.For = plan.OfficialReader
	p, err := plan.New(ctx, o.model.Listing, opt)
	if wraps[*plan.RefusedError](err) {
		return nil
	}
	if err != nil {
		return err
	}
	outputs, err := spans.Outputs(p)
	i := slices.IndexFunc(p.Readers, func(r plan.Reader) bool { return r.Name == opt.For })
	o.official = &alternative{spans.LikelyBytes(outputs), p.Readers[i].Loads}
	return err
}

// openSource reads the headers and small files of a source: a folder, a file, or a Hub repo.
func (f *sourceFlags) openSource(ctx context.Context, u *ui, spec string,
	opt plan.Options) (*opened, error) {
	if f.listed || !model.Exists(spec) {
		return f.openRepo(ctx, u, spec, opt)
	}
	if err := unfinished(spec); err != nil {
		return nil, err
	}
	o := &opened{}
	var err error
	if o.source, o.model, err = model.OpenLocal(ctx, spec, opt); err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// openRepo is openSource for a Hub id, even if a folder has that name.
func (f *sourceFlags) openRepo(ctx context.Context, u *ui, spec string,
	opt plan.Options) (*opened, error) {
	o := &opened{}
	c, repo, revision, err := f.repo(u, "source", spec)
	if err != nil {
		return nil, err
	}
	switch o.source, o.model, err = model.OpenHub(ctx, c, repo, revision, opt); {
	case wraps[*hub.Error](err): // its text names the source
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}
