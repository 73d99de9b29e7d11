package main

import (
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/pipeline"
)

// sourceFlags choose how a source is read and planned, and from which Hub.
type sourceFlags struct {
	recipe    pipeline.Recipe
	limitRate sizeFlag
	hubs      *pipeline.Hubs // shared by all models of a list; set by means
	instead   *hub.Options   // the demo's; nil is the environment's
}

// means returns what a command may use, except for what its own flags say.
func (f *sourceFlags) means(u *ui) pipeline.Means {
	if f.hubs == nil {
		f.hubs = &pipeline.Hubs{Options: f.instead, RateLimit: int64(f.limitRate), Patience: patience}
	}
	return pipeline.Means{Hubs: f.hubs, Version: versionText(), Log: u.log(), Progress: u.progress(),
		Notice: func(line string) { u.say("%s", line) }}
}

// register adds the flags of commands that plan a source.
func (f *sourceFlags) register(p *pflag.FlagSet) {
	r := &f.recipe
	p.StringVar(&r.PatternDict, "pattern-dict", "",
		"JSON `file` with the pattern dict (default the catalog's)")
	p.StringVar(&r.Layout, "layout", "",
		"`layout` of the result: transformers[-single], diffusers[-single], or single for ComfyUI (default the source's; needed if it's DF11)")
	p.StringVar(&r.Like, "like", "",
		"use the pattern dict of this `model`: a catalog entry, or the DF11 repo that it comes from")
	p.StringVar(&r.Component, "component", "",
		"`folder` of a diffusers pipeline to convert (default transformer, else unet)")
	p.StringVar(&r.File, "file", "",
		"the .safetensors `file` or the index to convert, if the source holds several models")
	p.BoolVar(&r.ExactF32, "exact-f32", false,
		"compress F32 weights whose values are all exact in BF16")
	p.BoolVar(&r.Unfilled, "unfilled", false,
		"accept modules that no known reader fills")
	p.StringVar(&r.For, "for", "",
		"compress only what this `reader` loads: dfloat11 (default: whatever any reader loads)")
	p.StringArrayVar(&r.Include, "include", nil,
		"also copy a folder's files that match this `glob`; repeatable (default what a model's readers open)")
	p.Var(&f.limitRate, "limit-rate", "limit per direction, e.g. 50MB/s (default none)")
}

// readerFlags are the flags of the commands that read a DF11 model and its original.
type readerFlags struct {
	sourceFlags // for the original
	limitFlags
	against string
}

func (f *readerFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.against, "against", "",
		"original `model`: org/name, ./folder, or a .safetensors file (default the manifest's)")
	f.limitFlags.register(p)
	var all pflag.FlagSet
	f.sourceFlags.register(&all)
	for name, usage := range map[string]string{
		"component":    "the original's `folder`, if it's a diffusers pipeline (default transformer, else unet)",
		"file":         "the original's .safetensors `file` or index, if it holds several models",
		"layout":       "the original's `layout` (default that of the DF11 model)",
		"pattern-dict": "JSON `file` with the pattern dict (default that of the DF11 model)",
	} {
		all.Lookup(name).Usage = usage
	}
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "include" {
			p.AddFlag(flag)
		}
	})
}

func (f *readerFlags) means(u *ui) pipeline.Means { return f.limitFlags.set(f.sourceFlags.means(u)) }
