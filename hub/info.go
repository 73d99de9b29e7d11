package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/names"
)

// Info resolves a revision ("" is main) to its commit and lists its files with sizes and hashes. A
// file name that must not become a local path is an error that wraps ErrUnsafePath. Offline, the
// shared cache answers.
func (c *Client) Info(ctx context.Context, repo, revision string) (*RepoInfo, error) {
	if err := checkRepo(repo); err != nil {
		return nil, err
	}
	revision = cmp.Or(revision, "main")
	if c.t.opt.Offline {
		info, err := c.cache.info(repo, revision)
		if err == nil && info.Unlisted {
			c.unlisted.Store(info)
		}
		return info, err
	}
	info, err := c.describe(ctx, repo, revision, "?blobs=true")
	switch {
	case err != nil:
		return nil, err
	// olah lists only names for a repo that it has mirrored (mirror/repos.py)
	case slices.ContainsFunc(info.Files, func(f FileInfo) bool { return f.Size < 0 }):
		tree, err := c.Tree(ctx, info.ID, info.SHA)
		info.Files = slices.SortedFunc(maps.Values(tree),
			func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) })
		return info, err
	case !slices.ContainsFunc(info.Files, func(f FileInfo) bool { return f.Hash() == "" }):
		c.last.Store(info)
	}
	return info, nil
}

// Files returns all files of a commit, by path. If the last Info was about that commit and had all
// hashes, Files asks for nothing. Otherwise it's Tree.
func (c *Client) Files(ctx context.Context, repo, commit string) (map[string]FileInfo, error) {
	if info := c.last.Load(); info != nil && info.ID == repo && info.SHA == commit {
		return info.ByPath(), nil
	}
	return c.Tree(ctx, repo, commit)
}

// Head returns the commit of a branch or another revision.
func (c *Client) Head(ctx context.Context, repo, rev string) (string, error) {
	info, err := c.describe(ctx, repo, rev, "")
	if err != nil {
		return "", err
	}
	return info.SHA, nil
}

// Describe returns what the Hub says about a repo at a revision ("" is main) now. Its files have
// names only. It asks less than [Client.Info], and never answers from memory or a cache.
func (c *Client) Describe(ctx context.Context, repo, revision string) (*RepoInfo, error) {
	return c.describe(ctx, repo, cmp.Or(revision, "main"), "")
}

// Probe asks about a repo once, and returns why the Hub doesn't describe it. It doesn't repeat the
// request, although the failure may be temporary.
func (c *Client) Probe(ctx context.Context, repo string) error {
	r := c.infoRequest(repo, "main", "")
	r.noRepeat = true
	_, err := c.t.call(ctx, r, new(infoDocument))
	return err
}

// DescribeDataset returns what the Hub says about a data set now: its name, and who may see it. A
// Hub without data sets has none of that name.
func (c *Client) DescribeDataset(ctx context.Context, id string) (*RepoInfo, error) {
	if err := checkRepo(id); err != nil {
		return nil, err
	}
	r := getRequest("read info of the data set "+id, id, c.Endpoint()+"/api/datasets/"+escapePath(id))
	r.finds = true
	var doc infoDocument
	if _, err := c.t.call(ctx, r, &doc); err != nil {
		return nil, err
	}
	info := doc.access()
	info.ID = cmp.Or(doc.ID, id)
	return info, nil
}

// infoRequest returns the request about a repo at a revision.
func (c *Client) infoRequest(repo, revision, query string) *request {
	r := c.t.repoGet("read model info of "+repo, repo, revPath("revision", revision)+query)
	r.finds = revision == "main" // another revision may be missing although the repo exists
	return r
}

// describe asks about a commit of a repo.
func (c *Client) describe(ctx context.Context, repo, revision, query string) (*RepoInfo, error) {
	r := c.infoRequest(repo, revision, query)
	var doc infoDocument
	if _, err := c.t.call(ctx, r, &doc); err != nil {
		return nil, err
	}
	if doc.SHA == "" { // hfd's answer instead of 404
		u, _ := url.Parse(r.url)
		return nil, c.t.failure(r, u, ErrRevisionNotFound)
	}
	info, err := doc.info()
	if err != nil {
		return nil, c.t.failure(r, nil, err)
	}
	if names.IsCommit(revision) && info.SHA != revision {
		return nil, c.t.errorf(r.op, ErrChanged, "asked for commit %s, answered with %s",
			revision, info.SHA)
	}
	info.ID = cmp.Or(info.ID, repo)
	return info, nil
}

// An infoDocument is what we read of the hub's answer about a model. Its card, tags, and counts
// vary too much. So does the RepoInfo of go-huggingface, which fails as a whole if one of these has
// another form, and in which a model isn't private if the hub doesn't say so. Its FileInfo doesn't
// tell an empty file from one of unknown size.
type infoDocument struct {
	ID  string
	SHA string
	// Gated is a string, or false for an open repo; hfd says true for a gated one. What a hub says
	// in another form, or not at all, opens nothing.
	Private, Gated any
	PipelineTag    any `json:"pipeline_tag"`
	LibraryName    any `json:"library_name"`
	LastModified   any
	Siblings       fileRows
}

// access says who may see the repo.
func (d *infoDocument) access() *RepoInfo {
	info := &RepoInfo{Private: d.Private == true, Open: d.Private == false && d.Gated == false}
	info.Gated, _ = d.Gated.(string)
	if d.Gated == true {
		info.Gated = "auto" // the mode is unknown, and the asker may be let in
	}
	return info
}

// info checks and converts the document.
func (d *infoDocument) info() (*RepoInfo, error) {
	if !names.IsCommit(d.SHA) {
		return nil, fmt.Errorf("%w: info names no commit", ErrNotHub)
	}
	if d.ID != "" && checkRepo(d.ID) != nil {
		return nil, fmt.Errorf("%w: info names the repo %q", ErrNotHub, d.ID)
	}
	info := d.access()
	info.ID, info.SHA = d.ID, d.SHA
	info.PipelineTag, _ = d.PipelineTag.(string)
	info.LibraryName, _ = d.LibraryName.(string)
	if text, ok := d.LastModified.(string); ok {
		info.LastModified, _ = time.Parse(time.RFC3339, text)
	}
	for _, row := range d.Siblings {
		f, err := row.file()
		if err != nil {
			return nil, err
		}
		info.Files = append(info.Files, f)
	}
	return info, nil
}
