package publish

import (
	"context"
	"errors"
	"net/url"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A Push is the target of a conversion that is published to a repo of the Hub.
type Push struct {
	Hub *hub.Client
	// Repo is the target, "namespace/name". Revision is its branch, "" for main.
	Repo     string
	Revision string
	// Private asks for a private repo, or with false allows a public one. With nil, the source
	// decides.
	Private *bool
}

// Where returns the repo and its branch.
func (p *Push) Where() Location {
	at := Location{Repo: p.Repo, URL: p.Hub.Endpoint() + "/" + p.Repo}
	if p.Revision != "" && p.Revision != "main" {
		at.Branch = p.Revision
		at.URL += "/tree/" + url.PathEscape(p.Revision)
	}
	return at
}

// Open creates or opens the repo and its branch. It refuses a repo without access, with the wrong
// visibility, or with files of others in the way.
func (p *Push) Open(ctx context.Context, run *Conversion, m *model.Model, from *Folder) (Remote,
	error) {
	r, err := openRepo(ctx, *p, run, m, from)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Empty reports whether the repo doesn't exist yet.
func (p *Push) Empty(ctx context.Context) bool {
	_, err := p.Hub.Info(ctx, p.Repo, "")
	return errors.Is(err, hub.ErrNotFound)
}

// CheckCard lets the Hub check a model card.
func (p *Push) CheckCard(ctx context.Context, card []byte) error {
	return p.Hub.ValidateCard(ctx, card)
}

// Hides reports whether the target's Hub says that it has no such model, or data set, or doesn't say
// that strangers may know of it although they may see the card that names it.
func (p *Push) Hides(ctx context.Context, m *model.Model, repo string, isDataset bool) bool {
	ask := func() (*hub.RepoInfo, error) { return p.Hub.Info(ctx, repo, "") }
	if isDataset {
		ask = func() (*hub.RepoInfo, error) { return p.Hub.DescribeDataset(ctx, repo) }
	}
	info, err := ask()
	if err != nil {
		return errors.Is(err, hub.ErrNotFound)
	}
	isKnown := info.Open || info.Gated != "" && !info.Private // everyone sees the name of a gated repo
	return !isKnown && p.isShown(ctx, m)
}

// isShown reports whether strangers may see the target's card: the target may be public, or is there
// and isn't private. A gate hides no card.
func (p *Push) isShown(ctx context.Context, m *model.Model) bool {
	if p.Visibility(ctx, m).Open {
		return true
	}
	target, err := p.Hub.Describe(ctx, p.Repo, "")
	return err == nil && !target.Private
}

// NameNow is [hub.Client.Leads] of the target's Hub.
func (p *Push) NameNow(ctx context.Context, repo string) (string, error) {
	return p.Hub.Leads(ctx, repo)
}

// CanCopy reports, by path, which large files of a source the Hub may be able to copy from the
// source's storage to the target's. After an error it's none of them: they can be fetched and
// uploaded instead. If there are large files, it costs a listing of the source.
func (p *Push) CanCopy(ctx context.Context, m *model.Model, files []plan.File) map[string]bool {
	can := map[string]bool{}
	for _, f := range p.copyable(ctx, m, files) {
		can[f.Path] = true
	}
	return can
}

// copyable lists the files that CanCopy reports.
func (p *Push) copyable(ctx context.Context, m *model.Model, files []plan.File) (list []hub.FileInfo) {
	large := map[string]bool{}
	for _, f := range files {
		if names.IsSHA256(f.ETag) {
			large[f.Path] = true
		}
	}
	if len(large) == 0 || m.Endpoint != p.Hub.Endpoint() {
		return nil
	}
	tree, err := p.Hub.Tree(ctx, m.ID, m.Commit)
	if err != nil {
		return nil
	}
	for _, f := range files {
		if e := tree[f.Path]; large[f.Path] && e.SHA256 != "" && e.XetHash != "" {
			list = append(list, e)
		}
	}
	return list
}
