package publish

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A Push says to which repo a conversion is published. A nil Push publishes nothing, and all its
// methods may be called.
type Push struct {
	Hub *hub.Client
	// Repo is the target, "namespace/name". Revision is its branch, "" for main.
	Repo     string
	Revision string
	// Private asks for a private repo, or with false allows a public one. With nil, the source
	// decides.
	Private *bool
}

// Publishes reports whether anything is published.
func (p *Push) Publishes() bool { return p != nil }

// Ref names the branch that the result goes to, as it was asked for: "namespace/name@branch", or "" if
// nothing is published.
func (p *Push) Ref() string {
	if !p.Publishes() {
		return ""
	}
	return p.Repo + "@" + cmp.Or(p.Revision, "main")
}

// A Location is where a result is published. The zero value is nowhere.
type Location struct {
	Repo   string
	Branch string // "" for main
	URL    string // where a person finds it
	Commit string // the newest that the run knows; after Finish, it holds the result
}

// Where returns the location, as far as it's known before anything is published.
func (p *Push) Where() Location {
	if !p.Publishes() {
		return Location{}
	}
	at := Location{Repo: p.Repo, URL: p.Hub.Endpoint() + "/" + p.Repo}
	if p.Revision != "" && p.Revision != "main" {
		at.Branch = p.Revision
		at.URL += "/tree/" + url.PathEscape(p.Revision)
	}
	return at
}

// Open creates or opens the target before any work, and refuses one without access, with the wrong
// visibility, or with files of others in the way. What is published comes from the folder.
func (p *Push) Open(ctx context.Context, run *Conversion, m *model.Model, from *Folder) (Remote,
	error) {
	if !p.Publishes() {
		return nowhere{from}, nil
	}
	r, err := openRepo(ctx, *p, run, m, from)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Empty reports whether the target doesn't exist yet. An existing one may hold much of the result.
func (p *Push) Empty(ctx context.Context) bool {
	if !p.Publishes() {
		return true
	}
	_, err := p.Hub.Info(ctx, p.Repo, "")
	return errors.Is(err, hub.ErrNotFound)
}

// CheckCard lets the target's server check a model card.
func (p *Push) CheckCard(ctx context.Context, card []byte) error {
	if !p.Publishes() {
		return nil
	}
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
	if !p.Publishes() {
		return "", nil
	}
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
	if !p.Publishes() || len(large) == 0 || m.Endpoint != p.Hub.Endpoint() {
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
