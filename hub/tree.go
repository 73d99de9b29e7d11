package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

// A treeRow is an entry as the hub writes it.
type treeRow struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	XetHash string `json:"xetHash"`
	LFS     *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// file converts a row. It reports false for a bad size or hash.
func (r *treeRow) file() (f FileInfo, ok bool) {
	f = FileInfo{Path: r.Path, Size: r.Size, BlobID: r.OID, XetHash: r.XetHash}
	if r.LFS != nil {
		f.SHA256 = strings.TrimPrefix(strings.ToLower(r.LFS.OID), "sha256:")
		f.Size = r.LFS.Size
	}
	return f, f.Size >= 0 && (r.LFS == nil || names.IsSHA256(f.SHA256))
}

// Limits for a tree: a repo has fewer than 100,000 files, and a page at least 50.
const (
	maxPages = 4000
	maxTree  = 32 << 20 // bytes of all names and hashes
)

// Tree returns all files at a revision, by path.
func (c *Client) Tree(ctx context.Context, repo, rev string) (map[string]FileInfo, error) {
	r := c.t.RepoGet("list files of "+repo, repo,
		wire.RevPath("tree", rev)+"?recursive=true&expand=false")
	tree, seen, size := map[string]FileInfo{}, map[string]bool{}, 0
	for r.URL != "" {
		if seen[r.URL] || len(seen) >= maxPages {
			return nil, c.t.Errorf(r.Op, wire.ErrNotHub, "the pages never end")
		}
		seen[r.URL] = true
		var rows []treeRow
		header, err := c.t.Call(ctx, r, &rows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if size += len(row.Path) + len(row.OID) + len(row.XetHash); size > maxTree {
				return nil, c.t.Errorf(r.Op, wire.ErrTooLarge, "more than %d MiB of names",
					maxTree>>20)
			}
			if row.Type != "file" {
				continue
			}
			if err := checkPath(row.Path); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Op, err)
			}
			file, ok := row.file()
			if !ok {
				return nil, c.t.Errorf(r.Op, wire.ErrNotHub,
					"the tree gives a bad size or hash for %q", row.Path)
			}
			tree[row.Path] = file
		}
		if r.URL, err = nextPage(c.t, r, header); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// nextPage returns the Link header's next page, or "" after the last. It refuses a link to another
// origin, which the token must not go to, and which no hub sends.
func nextPage(t *wire.Transport, r *wire.Request, header http.Header) (string, error) {
	link := nextLink.FindStringSubmatch(strings.Join(header.Values("Link"), ","))
	if link == nil {
		return "", nil
	}
	base, err := url.Parse(r.URL)
	if err != nil {
		return "", wire.ErrBadURL
	}
	next, _, err := t.Endpoint.Target(base, link[1])
	if err != nil {
		return "", t.Failure(r, base, err)
	}
	if !t.Endpoint.Owns(next) {
		return "", t.Failure(r, base,
			fmt.Errorf("%w: next page lies on %s", wire.ErrNotHub, next.Host))
	}
	return next.String(), nil
}

// nextLink matches <url>; rel="next" in a Link header, which may have other links.
var nextLink = regexp.MustCompile(`(?i)<([^>]*)>[^<]*;\s*rel="?next\b`)

// Branches returns the names of a repo's branches.
func (c *Client) Branches(ctx context.Context, repo string) ([]string, error) {
	var refs struct{ Branches []struct{ Name string } }
	if _, err := c.t.Call(ctx, c.t.RepoGet("list branches of "+repo, repo, "/refs"),
		&refs); err != nil {
		return nil, err
	}
	var names []string
	for _, b := range refs.Branches {
		names = append(names, b.Name)
	}
	return names, nil
}
