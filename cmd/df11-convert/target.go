package main

import (
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/pipeline"
)

// targetFlags choose where the result goes, who may read it, and the repo that its card names.
type targetFlags struct {
	out, repoID, revision, original, license string
	push, private, public, force             bool
}

func (f *targetFlags) register(p *pflag.FlagSet) {
	p.StringVarP(&f.out, "output", "o", "",
		"`folder` for the result (default ./NAME-DF11; with --push none)")
	p.BoolVar(&f.push, "push", false, "publish the result on the Hub")
	p.StringVar(&f.repoID, "repo-id", "", "target `repo`, ORG/NAME (default YOU/NAME-DF11)")
	f.registerListed(p)
	registerOriginal(p, &f.original)
	p.StringVar(&f.license, "license", "",
		"license `ID` for the card, such as mit (default the source's)")
	p.BoolVar(&f.force, "force", false,
		"overwrite files this program didn't write, replace another result, and verify existing outputs")
}

func registerOriginal(p *pflag.FlagSet, original *string) {
	p.StringVar(original, "original", "",
		"stop unless the local source is a copy of this Hub `repo`, by SHA-256; the card names it")
}

// registerListed adds the flags that say how the targets of a list are published.
func (f *targetFlags) registerListed(p *pflag.FlagSet) {
	p.StringVar(&f.revision, "revision", "",
		"`branch` of the target; created if it doesn't exist (default main)")
	p.BoolVar(&f.private, "private", false,
		"create a private target; stop if it exists and isn't private")
	p.BoolVar(&f.public, "public", false, "allow a public target for a local, private, or gated source")
}

// set adds the flags to options.
func (f *targetFlags) set(o *pipeline.Options) error {
	if f.private && f.public {
		return usagef("--private and --public exclude each other")
	}
	o.Folder, o.Push, o.Repo, o.Branch = f.out, f.push, f.repoID, f.revision
	o.Original, o.License, o.Force = f.original, f.license, f.force
	switch {
	case f.private:
		o.Visibility = pipeline.Private
	case f.public:
		o.Visibility = pipeline.Public
	}
	return nil
}
