package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/publish"
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
	p.StringVar(&f.revision, "revision", "",
		"`branch` of the target; created if it doesn't exist (default main)")
	p.BoolVar(&f.private, "private", false,
		"create a private target; stop if it exists and isn't private")
	p.BoolVar(&f.public, "public", false, "allow a public target for a local, private, or gated source")
	p.StringVar(&f.original, "original", "",
		"stop unless the local source is a copy of this Hub `repo`, by SHA-256; the card names it")
	p.StringVar(&f.license, "license", "",
		"license `ID` for the card, such as mit (default the source's)")
	p.BoolVar(&f.force, "force", false,
		"overwrite files this program didn't write, allow other .safetensors files, and verify existing outputs")
}

func (f *targetFlags) check() error {
	switch {
	case f.private && f.public:
		return usagef("--private and --public exclude each other")
	case !f.push && (f.repoID != "" || f.private || f.public || f.revision != ""):
		return usagef("--repo-id, --revision, --private and --public need --push")
	}
	if err := f.names(); err != nil {
		return err
	}
	if f.repoID != "" {
		if err := validRepo("--repo-id", fullRepoID("you", f.repoID)); err != nil {
			return err
		}
	}
	if wrong := hubrules.CheckValue("license", f.license); f.license != "" && wrong != "" {
		return hinted{usagef("--license: %q isn't one of the Hub's license IDs", f.license),
			"list them at https://huggingface.co/docs/hub/repositories-licenses; other is one, too"}
	}
	original, _, _ := strings.Cut(f.original, "@")
	return validRepo("--original", original)
}

// checkFolder refuses to put a result among other things in places where that's a mistake: the
// current folder, the home, and the root of the file system.
func checkFolder(dir, model string) error {
	is := func(place string) bool {
		a, err := os.Stat(dir)
		b, err2 := os.Stat(place)
		return errors.Join(err, err2) == nil && os.SameFile(a, b)
	}
	if !is(".") && !is(homeDir()) && !is(filepath.VolumeName(dir)+string(filepath.Separator)) {
		return nil
	}
	var others []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		switch name := e.Name(); {
		case name == names.Manifest, name == names.StateDir: // an earlier run's
			return nil
		case !strings.HasPrefix(name, ".") && !startsRepo.MatchString(name):
			others = append(others, name)
		}
	}
	if len(others) == 0 || err != nil {
		return err
	}
	return hinted{usagef("%s holds other things, among which the result would lie: %s", dir,
		human.List(others)), "choose a folder of its own: -o " +
		human.ShellWord(filepath.Join(dir, resultName(model))) + "; or add --force"}
}

// startsRepo matches what a clone of a new repo holds.
var startsRepo = regexp.MustCompile(`(?i)^(readme|licen[cs]e|notice)([.-]|$)`)

// validRepo checks the repo that a flag names; an empty one is valid.
func validRepo(flag, id string) error {
	if err := names.CheckNewRepo(id); id != "" && err != nil {
		return usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

// names turns the Hub's addresses into repo ids.
func (f *targetFlags) names() (err error) {
	if f.repoID, err = repoID(f.repoID); err != nil {
		return err
	}
	f.original, err = repoID(f.original)
	return err
}

// fullRepoID adds a namespace to a name without one.
func fullRepoID(namespace, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// push finds out where to publish: to the given repo, or to the user's own repo with the model's
// name. It asks the Hub who the user is only if no namespace is given, because the Hub limits that
// request.
func (f *convertFlags) push(ctx context.Context, u *ui, model string) (*publish.Push, error) {
	c, err := f.client(u, "target")
	if err != nil {
		return nil, err
	}
	push := &publish.Push{Hub: c, Repo: f.target.repoID, Revision: f.target.revision}
	if f.target.private || f.target.public {
		push.Private = &f.target.private
	}
	if only := c.OnlyRepo(); only != "" {
		if push.Repo = cmp.Or(push.Repo, only); push.Repo != only {
			return nil, hinted{usagef("--repo-id %s: trusted publishing is for %s", push.Repo,
				only), "set HF_OIDC_RESOURCE to the target"}
		}
	}
	push.Repo = cmp.Or(push.Repo, resultName(model))
	if !strings.Contains(push.Repo, "/") {
		me, err := c.WhoAmI(ctx)
		if err != nil {
			return nil, err
		}
		push.Repo = fullRepoID(me, push.Repo)
	}
	if names.CheckNewRepo(push.Repo) != nil && f.target.repoID == "" {
		return nil, hinted{usagef("the Hub takes no repo named %q", push.Repo), "name the target with --repo-id ORG/NAME"}
	}
	return push, validRepo("--repo-id", push.Repo)
}
