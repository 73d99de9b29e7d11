package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
)

// A fileRow is a file as the hub writes it, in an answer about a commit or in a tree.
type fileRow struct {
	Type            string // in a tree, "file" or "directory"
	Path, RFilename string
	OID, BlobID     string
	Size            *int64 // nil if the hub doesn't say
	XetHash         string
	LFS             *struct {
		OID, SHA256 string
		Size        int64
	}
}

// maxFiles is how many files a repo may have: as many as the Hub advises at most, and as a model
// may have. https://huggingface.co/docs/hub/repositories-recommendations
const maxFiles = 100_000

// fileRows are the rows of one answer. Their number is bounded before they're held, because an
// empty row takes fifty times the memory of its JSON.
type fileRows []fileRow

// UnmarshalJSON implements json.Unmarshaler.
func (rows *fileRows) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return json.Unmarshal(b, (*[]fileRow)(rows))
	}
	for d.More() {
		if len(*rows) == maxFiles {
			return errFiles
		}
		var row fileRow
		if err := d.Decode(&row); err != nil {
			return err
		}
		*rows = append(*rows, row)
	}
	return nil
}

// errFiles says that a repo has too many files.
var errFiles = fmt.Errorf("%w: it has more than %s files", ErrTooLarge, human.Grouped(maxFiles))

// file checks and converts a row. A size of -1 is unknown.
func (r *fileRow) file() (FileInfo, error) {
	f := FileInfo{Path: cmp.Or(r.Path, r.RFilename), Size: -1, BlobID: cmp.Or(r.OID, r.BlobID),
		XetHash: r.XetHash}
	if r.Size != nil {
		f.Size = *r.Size
	}
	if r.LFS != nil {
		f.SHA256, f.Size = cmp.Or(r.LFS.OID, r.LFS.SHA256), r.LFS.Size // in a tree, in an info
	}
	if f.Size < -1 || r.LFS != nil && !names.IsSHA256(f.SHA256) {
		return f, fmt.Errorf("%w: bad size or hash of %q", ErrNotHub, f.Path)
	}
	return f, checkPath(f.Path)
}

// Limits for a tree.
const (
	maxTree  = 32 << 20 // bytes of all names and hashes
	pageSize = 8 << 10  // that a page counts for at least, so that empty ones end, too
)

// Tree returns all files at a revision, by path.
func (c *Client) Tree(ctx context.Context, repo, rev string) (map[string]FileInfo, error) {
	r := c.t.repoGet("list files of "+repo, repo,
		revPath("tree", rev)+"?recursive=true&expand=false")
	tree, size := map[string]FileInfo{}, 0
	for r.url != "" {
		var rows fileRows
		header, err := c.t.call(ctx, r, &rows)
		if err != nil {
			return nil, err
		}
		if size += pageSize; size > maxTree {
			return nil, c.t.errorf(r.op, ErrTooLarge, "more than %d MiB of names", maxTree>>20)
		}
		for _, row := range rows {
			size += len(row.Path) + len(row.OID) + len(row.XetHash)
			if row.Type != "file" {
				continue
			}
			file, err := row.file()
			if err != nil {
				return nil, c.t.failure(r, nil, err)
			}
			if file.Size < 0 {
				return nil, c.t.errorf(r.op, ErrNotHub, "no size of %q", file.Path)
			}
			if tree[file.Path] = file; len(tree) > maxFiles {
				return nil, c.t.failure(r, nil, errFiles)
			}
		}
		if r.url, err = nextPage(c.t, r, header); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// nextPage returns the Link header's next page, or "" after the last. It refuses a link to another
// origin, which the token must not go to, and which no hub sends.
func nextPage(t *transport, r *request, header http.Header) (string, error) {
	link := nextLink.FindStringSubmatch(strings.Join(header.Values("Link"), ","))
	if link == nil {
		return "", nil
	}
	next, _, err := t.endpoint.target(t.endpoint.URL, link[1])
	if err == nil && !t.endpoint.owns(next) {
		err = fmt.Errorf("%w: next page lies on %s", ErrNotHub, next.Host)
	}
	if err != nil {
		return "", t.failure(r, nil, err)
	}
	return next.String(), nil
}

// nextLink matches <url>; rel="next" in a Link header, which may have other links.
var nextLink = regexp.MustCompile(`(?i)<([^>]*)>[^<]*;\s*rel="?next\b`)
