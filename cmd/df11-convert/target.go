package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
)

// targetFlags say where the result goes, who may read it, and which model its card names as the
// base.
type targetFlags struct {
	out, repoID, revision, baseModel string
	push, private, public, force     bool
}

func (f *targetFlags) register(p *pflag.FlagSet) {
	p.StringVarP(&f.out, "output", "o", "",
		"`folder` for the result (default ./NAME-DF11; with --push nothing is kept)")
	p.BoolVar(&f.push, "push", false, "publish the result on the Hub")
	p.StringVar(&f.repoID, "repo-id", "", "target `repo`, namespace/name (default YOU/NAME-DF11)")
	p.StringVar(&f.revision, "revision", "",
		"`branch` of the target to publish to, made if it is not there (default main)")
	p.BoolVar(&f.private, "private", false,
		"make the target private; refuse one that is there and is not")
	p.BoolVar(&f.public, "public", false, "allow a public target for a private or gated source")
	p.StringVar(&f.baseModel, "base-model", "",
		"Hub `repo` that a local source came from, for the model card, or none")
	p.BoolVar(&f.force, "force", false,
		"write over files that are not of this program, and beside .safetensors files that are not")
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
	if f.baseModel == pipeline.NoBaseModel {
		return nil
	}
	return validRepo("--base-model", f.baseModel)
}

// validRepo checks the repo, or none, that a flag names.
func validRepo(flag, id string) error {
	if err := names.CheckNewRepo(id); id != "" && err != nil {
		return usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

// checkLineage makes sure that a model is not published without a word about where it comes from.
func (f *targetFlags) checkLineage(u *ui, m *model.Model) error {
	if !m.Local || f.baseModel != "" || m.Lineage.Repo != "" || m.Card.String("base_model") != "" {
		return nil
	}
	const advice = "name it with --base-model org/name, so that the Hub lists the result among its quantizations"
	if f.push {
		return hinted{usagef("the Hub repo that %s comes from is not known", m.ID),
			advice + "; if there is none, add --base-model none"}
	}
	u.log().Warn("the Hub repo that " + m.ID + " comes from is not known; " + advice)
	return nil
}

// names takes addresses of the Hub for repo ids. An address of a branch chooses that branch.
func (f *targetFlags) names() (err error) {
	if f.repoID, err = repoID(f.repoID); err != nil {
		return err
	}
	if id, revision, ok := strings.Cut(f.repoID, "@"); ok && f.revision == "" {
		f.repoID, f.revision = id, revision
	}
	f.baseModel, err = repoID(f.baseModel)
	return err
}

// fullRepoID puts a namespace before a repo's name that has none.
func fullRepoID(namespace, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// push finds out where to publish: the given repo, or the user's own with the name of the model.
// The Hub limits the question who the user is, so that it is asked only where the namespace is not
// given. A token is needed for nothing else here.
func (f *convertFlags) push(ctx context.Context, u *ui, src *opened) (*target.Push, error) {
	c, err := f.client(u, "target")
	if err != nil {
		return nil, err
	}
	push := &target.Push{Hub: c, Repo: f.target.repoID, Revision: f.target.revision}
	if f.target.private || f.target.public {
		push.Private = &f.target.private
	}
	if only := c.OnlyRepo(); only != "" {
		if push.Repo = cmp.Or(push.Repo, only); push.Repo != only {
			return nil, hinted{usagef("--repo-id %s: trusted publishing is for %s", push.Repo,
				only), "set HF_OIDC_RESOURCE to the target"}
		}
	}
	push.Repo = cmp.Or(push.Repo, resultName(src.model))
	if !strings.Contains(push.Repo, "/") {
		me, err := c.WhoAmI(ctx)
		if err != nil {
			return nil, err
		}
		push.Repo = fullRepoID(me, push.Repo)
	}
	return push, validRepo("--repo-id", push.Repo)
}
