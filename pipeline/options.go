package pipeline

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/verify"
)

// Options say how to convert a source, and where the result goes. The zero value does what the
// command does without flags: it writes the folder NAME-DF11 in the current one.
type Options struct {
	Means
	Recipe Recipe
	// OnHub says that the source is a repo, even if a folder has its name.
	OnHub bool

	// Folder is where the result goes, and stays. If it's "", the result goes to ./NAME-DF11, or
	// with Push to no folder.
	Folder string
	// Push publishes the result in Repo, "ORG/NAME", or "NAME" for the token's owner. If Repo is
	// "", it's OWNER/NAME-DF11. Branch is created if it doesn't exist; "" is main.
	Push   bool
	Repo   string
	Branch string
	// Visibility says who may see the published result. If it's "", the result is as open as the
	// source's repo.
	Visibility Visibility
	// Original is the Hub repo, "ORG/NAME" or "ORG/NAME@REVISION", that a local source is a copy
	// of. Its files are compared by SHA-256; the card then names the repo.
	Original string
	// License is one of the Hub's license IDs. It replaces what the source's card says.
	License string
	// Force overwrites files of others that have names of the result's, replaces the result of
	// another source, and proves again what a target holds.
	Force bool

	// Disk limits temporary disk space, in bytes; 0 is all free space. WorkDir holds unfinished
	// work if there is no folder; "" is the user's cache. If SharedWorkDir is set, each source gets
	// a folder of its own in it.
	Disk          int64
	WorkDir       string
	SharedWorkDir bool

	// Part makes only a share of the result: part Part of Parts, counted from 1. With Finish, a
	// call completes what the parts have published. Both need Push. Zeros make everything.
	Part, Parts int
	Finish      bool

	// Samples lets Status read a few bytes of a model that isn't published, and return the error
	// with which a conversion refuses them. Convert always reads them.
	Samples bool
}

// Means are what a call may use.
type Means struct {
	// Workers is how many threads compute at once; 0 is one for each core.
	Workers int
	// Memory is a budget in bytes, at least 64 MiB. If it's 0, it's three quarters of the
	// container's limit, or no budget. While a call with a budget runs, it sets the limit of this
	// process's garbage collector.
	Memory int64
	// GPU says whether a GPU decodes everything a second time; "" uses one if there is one.
	GPU verify.GPUMode
	// Hubs are where sources and results are. If it's nil, the environment names them.
	Hubs *Hubs
	// Version is written into manifests, cards, and requests. "" is the version of this module.
	Version string

	// Log gets warnings, and with level Info every step. Nil discards them.
	Log *slog.Logger
	// Notice is called with a line for people about what the call does, such as what it waits for.
	// It must be safe for concurrent calls, and the call waits for it. Nil ignores them.
	Notice func(line string)
	// Progress is called several times a second while weights move, never twice at once, and a last
	// time with Ended before the call returns. The call doesn't return while it runs, even if the
	// context ends, so it must not block. If it panics, it isn't called again, and the call panics
	// when it's done. Nil ignores it.
	Progress func(Progress)
}

// A Recipe says how a source is read and planned. The zero value leaves it to the source and the
// catalog of models.
type Recipe struct {
	// Component is the folder of a diffusers pipeline to convert; "" is transformer, else unet.
	Component string
	// File is the .safetensors file or the index to convert, if the source holds several models.
	File string
	// Layout is the layout of the result; "" is the source's. With it, the source may be a DF11
	// model.
	Layout string
	// PatternDict is a JSON file with the pattern dict. Like names a catalog entry, or the DF11
	// repo that it comes from, to take the pattern dict of; next to PatternDict, only its names and
	// ties apply. If both are "", the catalog decides.
	PatternDict, Like string
	// For compresses only what this reader loads: "dfloat11", or "" for any.
	For string
	// ExactF32 compresses F32 weights whose values are all exact in BF16. Unfilled accepts modules
	// that no known reader fills.
	ExactF32, Unfilled bool
	// Include lists globs of a folder's files to copy, although no reader of the model opens them.
	Include []string
}

// Licenses lists the Hub's license IDs, which Options.License can be.
func Licenses() []string { return slices.Clone(hubrules.Licenses) }

// A Visibility says who may see a repo.
type Visibility string

// The values of Visibility.
const (
	// Private creates a private repo, and refuses one that isn't private.
	Private Visibility = "private"
	// Public allows a public repo for a local, private, or gated source.
	Public Visibility = "public"
)

// Hubs are the Hubs of sources and results. Calls that share it share connections, limits, and what
// the Hubs have said. Log, Notice, Version, and Memory stay those of each call. The zero value is
// ready to use: the environment names both Hubs and the token, as for the Python client.
// DF11_PUSH_ENDPOINT names the Hub of results if it's another one.
type Hubs struct {
	// Options replace those of the environment, for both Hubs. Target replaces them for the Hub of
	// results, if it's another one.
	Options, Target *hub.Options
	// RateLimit limits each direction, in bytes per second; 0 is no limit.
	RateLimit int64
	// Patience limits all waits of one request together; 0 is 90 minutes.
	Patience time.Duration

	shared clients
}

// Check refuses options that contradict each other, and a push without a token. It asks no Hub.
func (o *Options) Check() error { return described(o.check()) }

func (o *Options) check() error {
	if err := o.checkTarget(); err != nil {
		return err
	}
	if _, err := o.Means.memory(); err != nil {
		return err
	}
	if err := o.checkPart(); err != nil || !o.Push {
		return err
	}
	c, err := o.client("target")
	if err != nil {
		return err
	}
	return c.NeedToken()
}

// CheckTarget is the part of Check that is about the target.
func (o *Options) CheckTarget() error { return described(o.checkTarget()) }

func (o *Options) checkPart() error {
	p := o.part()
	if err := p.Check(); err != nil {
		return usage.Of(err)
	}
	if !o.Push && (o.Finish || !p.Whole()) {
		return usage.Errorf("--shard and --finish need --push")
	}
	return nil
}

func (o *Options) part() spans.Part { return spans.Part{I: o.Part, N: o.Parts} }

// checkTarget checks what can be known of the target without a Hub, and turns the Hub's addresses
// into repo ids.
func (o *Options) checkTarget() (err error) {
	switch o.Visibility {
	case "", Private, Public:
	default:
		return usage.Errorf("visibility %q: want %q or %q", o.Visibility, Private, Public)
	}
	if o.Disk < 0 {
		return usage.Errorf("--disk can't be negative")
	}
	if !o.Push && (o.Repo != "" || o.Visibility != "" || o.Branch != "") {
		given := map[string]bool{"--repo-id": o.Repo != "", "--revision": o.Branch != "",
			"--private": o.Visibility == Private, "--public": o.Visibility == Public}
		for _, flag := range slices.Sorted(maps.Keys(given)) {
			if given[flag] {
				return usage.Errorf("%s: you need --push for that", flag)
			}
		}
	}
	if o.Branch != "" {
		if err := names.CheckBranch(o.Branch); err != nil {
			return usage.Errorf("--revision: %w", err)
		}
	}
	if o.Repo, err = address.RepoID(o.Repo); err != nil {
		return err
	}
	if repo, branch, named := strings.Cut(o.Repo, "@"); named {
		return usage.Errorf("--repo-id: want %s alone, and its branch as --revision %s", repo, branch)
	}
	if o.Original, err = address.RepoID(o.Original); err != nil {
		return err
	}
	if o.Repo != "" {
		if err := validRepo("--repo-id", names.FullRepo("you", o.Repo)); err != nil {
			return err
		}
	}
	if wrong := hubrules.CheckValue("license", o.License); o.License != "" && wrong != "" {
		return hint.On(usage.Errorf("--license: %q isn't one of the Hub's license IDs", o.License),
			hint.License)
	}
	original, _, _ := strings.Cut(o.Original, "@")
	return validRepo("--original", original)
}

// validRepo checks the repo that a flag names; an empty one is valid.
func validRepo(flag, id string) error {
	if err := names.CheckNewRepo(id); id != "" && err != nil {
		return usage.Errorf("%s: %w", flag, err)
	}
	return nil
}
