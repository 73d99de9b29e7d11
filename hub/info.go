package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	gohf "github.com/gomlx/go-huggingface/hub"
)

// RepoInfo is what a hub says about one commit of a model.
type RepoInfo struct {
	ID          string // the repo's present name, after renames
	SHA         string // the commit; everything else is pinned to it
	Private     bool
	Gated       string // "", "auto" or "manual"
	Disabled    bool
	Files       []FileInfo     // in the hub's order
	CardData    map[string]any // the card's front matter; nil if there is none
	PipelineTag string
	LibraryName string
	Tags        []string
	Parameters  map[string]int64 // weights per dtype, where the hub counted them
}

// FileInfo is one file of a commit. SHA256 is set for large (LFS) files, and is
// the hash of the content; BlobID is git's hash of a plain file's content.
type FileInfo struct {
	Path   string
	Size   int64
	SHA256 string
	BlobID string
}

// File gives the reference to read a file of the commit by.
func (i *RepoInfo) File(path string) (FileRef, bool) {
	at := slices.IndexFunc(i.Files, func(f FileInfo) bool { return f.Path == path })
	if at < 0 {
		return FileRef{}, false
	}
	return i.Files[at].Ref(i.ID, i.SHA), true
}

// Ref gives the reference to read the file by. A large file's BlobID is only
// the hash of its pointer, and is left out.
func (f FileInfo) Ref(repo, commit string) FileRef {
	ref := FileRef{Repo: repo, Commit: commit, Path: f.Path, Size: f.Size, SHA256: f.SHA256}
	if f.SHA256 == "" {
		ref.BlobID = f.BlobID
	}
	return ref
}

// Info resolves a revision ("" is main) to its commit and lists its files with
// sizes and hashes. A file name that must not become a local path is an error
// that wraps ErrUnsafePath. Offline it answers from the shared cache.
func (c *Client) Info(ctx context.Context, repo, revision string) (*RepoInfo, error) {
	if err := checkRepo(repo); err != nil {
		return nil, err
	}
	revision = orDefault(revision, "main")
	if c.opt.Offline {
		return c.cachedInfo(repo, revision)
	}
	r := c.get("read model info of "+repo, repo, c.apiURL(repo, revPath("revision", revision)+"?blobs=true"))
	var body []byte
	if _, err := c.call(ctx, r, &body); err != nil {
		return nil, err
	}
	info, err := parseInfo(body)
	if err != nil {
		return nil, c.errorf(r.op, ErrNotHub, "%v", err)
	}
	if isCommit(revision) && info.SHA != revision {
		return nil, c.errorf(r.op, ErrChanged, "asked for commit %s, answered with %s", revision, info.SHA)
	}
	info.ID = orDefault(info.ID, repo)
	if err := c.completeFiles(ctx, info); err != nil {
		return nil, err
	}
	for _, f := range info.Files {
		if err := ValidPath(f.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", r.op, err)
		}
	}
	return info, nil
}

// completeFiles asks the tree for sizes and hashes if the info came without.
func (c *Client) completeFiles(ctx context.Context, info *RepoInfo) error {
	if !slices.ContainsFunc(info.Files, func(f FileInfo) bool { return f.Size < 0 }) {
		return nil
	}
	tree, err := c.Tree(ctx, info.ID, info.SHA)
	if err != nil {
		return err
	}
	for i, f := range info.Files {
		entry, ok := tree[f.Path]
		if !ok {
			return c.errorf("read model info of "+info.ID, ErrNotHub, "%s is listed but not in the tree", f.Path)
		}
		info.Files[i] = FileInfo{Path: f.Path, Size: entry.Size, SHA256: entry.SHA256, BlobID: entry.BlobID}
	}
	return nil
}

// parseInfo reads the info document. go-huggingface's type is used for what it
// knows; only the type, never its network code, which would follow redirects
// with the token, ignore the context, not retry, print to stdout and report
// broken transfers as success. Where its strict types do not fit a repo, and
// for all that it does not know, the document is read leniently: an odd card
// never fails a run.
func parseInfo(body []byte) (*RepoInfo, error) {
	var doc document
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("info is no JSON object")
	}
	info := &RepoInfo{
		ID: doc.text("id"), SHA: doc.text("sha"), Tags: doc.list("tags"),
		Private: doc.flag("private"), Disabled: doc.flag("disabled"), Gated: doc.gated(),
		PipelineTag: doc.text("pipeline_tag"), LibraryName: doc.text("library_name"),
	}
	doc.into("cardData", &info.CardData)
	var counts struct {
		Parameters map[string]int64 `json:"parameters"`
	}
	doc.into("safetensors", &counts)
	info.Parameters = counts.Parameters
	if typed, ok := typedInfo(body); ok {
		info.ID, info.SHA, info.Tags = typed.ID, typed.CommitHash, typed.Tags
	}
	if !isCommit(info.SHA) {
		return nil, fmt.Errorf("info names no commit")
	}
	var err error
	info.Files, err = doc.siblings()
	return info, err
}

func typedInfo(body []byte) (*gohf.RepoInfo, bool) {
	var typed gohf.RepoInfo
	err := json.Unmarshal(body, &typed)
	return &typed, err == nil
}

// document is a JSON object whose members are read one by one, so that one of
// an unexpected type is only missed.
type document map[string]json.RawMessage

func (d document) into(key string, out any) {
	_ = json.Unmarshal(d[key], out)
}

func (d document) text(key string) (s string) {
	d.into(key, &s)
	return s
}

func (d document) flag(key string) (b bool) {
	d.into(key, &b)
	return b
}

func (d document) list(key string) (l []string) {
	d.into(key, &l)
	return l
}

// gated is false, "auto" or "manual"; true is what old hubs say.
func (d document) gated() string {
	if d.flag("gated") {
		return "manual"
	}
	return d.text("gated")
}

// siblings lists the files; a size of -1 says that it was not told.
func (d document) siblings() ([]FileInfo, error) {
	var list []struct {
		Name   string `json:"rfilename"`
		Size   *int64 `json:"size"`
		BlobID string `json:"blobId"`
		LFS    *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	}
	if raw, ok := d["siblings"]; ok {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("info lists its files in an unknown form")
		}
	}
	files := make([]FileInfo, 0, len(list))
	for _, s := range list {
		f := FileInfo{Path: s.Name, Size: -1, BlobID: s.BlobID}
		if s.Size != nil {
			f.Size = *s.Size
		}
		if s.LFS != nil {
			f.SHA256, f.Size = strings.ToLower(s.LFS.SHA256), s.LFS.Size
		}
		if f.Size < -1 || f.SHA256 != "" && !isSHA256(f.SHA256) {
			return nil, fmt.Errorf("info gives a bad size or hash for %q", oneLine(s.Name))
		}
		files = append(files, f)
	}
	return files, nil
}
