package hubtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// operation is one line of a commit after the header.
type operation struct {
	Key      string
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
	Algo     string `json:"algo"`
	OID      string `json:"oid"`
	Size     *int64 `json:"size"`
}

// newCommit is the body of a commit.
type newCommit struct {
	header struct {
		Summary      string `json:"summary"`
		Description  string `json:"description"`
		ParentCommit string `json:"parentCommit"`
	}
	ops []operation
}

// readCommit parses an NDJSON commit body, with or without the last newline.
func (s *Server) readCommit(r *http.Request) (q newCommit, err error) {
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, s.cfg.limit(ruleCommitBytes)))
	for n := 0; ; n++ {
		var line struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		}
		err := dec.Decode(&line)
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			if q.header.Summary == "" {
				return q, fail(http.StatusBadRequest, "the commit needs a summary")
			}
			return q, nil
		case tooLarge:
			return q, ruleCommitBytes.refuse()
		case err != nil:
			return q, fail(http.StatusBadRequest, "invalid NDJSON: %v", err)
		case (line.Key == "header") != (n == 0):
			return q, fail(http.StatusBadRequest,
				"the header must be the first line and the only one")
		}
		if n == 0 {
			err = json.Unmarshal(line.Value, &q.header)
		} else {
			op := operation{Key: line.Key}
			err = json.Unmarshal(line.Value, &op)
			q.ops = append(q.ops, op)
		}
		if err != nil {
			return q, fail(http.StatusBadRequest, "invalid %s: %v", line.Key, err)
		}
	}
}

// apply answers POST /api/models/{id}/commit/{rev}.
func apply(c *call, q newCommit) (any, error) {
	rp, rev, parent := c.repo, c.r.PathValue("rev"), q.header.ParentCommit
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	ref := branchRef(rev)
	if rp.refs[ref] == "" {
		return nil, fail(http.StatusBadRequest, "commits go to a branch, not to %s", rev)
	}
	if parent != "" && (len(parent) < 5 || !strings.HasPrefix(head.OID, parent)) {
		status := http.StatusPreconditionFailed
		if c.cfg.Stale500 {
			status = http.StatusInternalServerError
		}
		return nil, fail(status, "A commit has happened since. Please refresh and try again.")
	}
	files, err := c.edit(head.Files, q.ops)
	if err != nil {
		return nil, err
	}
	if err := c.cfg.checkFolders(files, strings.TrimPrefix(ref, "refs/heads/")); err != nil {
		return nil, err
	}
	if err := checkCommittedCard(files["README.md"], head.Files["README.md"]); err != nil {
		return nil, err
	}
	oid := rp.add(c.cfg.clock(), ref,
		&Commit{Title: q.header.Summary, Message: q.header.Description, Files: files})
	if ref == "refs/heads/main" {
		err = c.land(rp.name, head.Files, files)
	}
	return map[string]any{"success": true, "hookOutput": "", "commitOid": oid,
		"commitUrl": fmt.Sprintf("%s/%s/commit/%s", c.URL, rp.name, oid)}, err
}

// edit applies the operations to a copy of files.
func (c *call) edit(files map[string]File, ops []operation) (map[string]File, error) {
	if int64(len(ops)) > c.cfg.limit(ruleCommitFiles) {
		return nil, ruleCommitFiles.refuse()
	}
	next := maps.Clone(files)
	seen := map[string]bool{}
	for _, op := range ops {
		if err := checkPath(op.Path); err != nil {
			return nil, err
		}
		if seen[op.Path] {
			return nil, fail(http.StatusBadRequest, "%s is named twice", op.Path)
		}
		seen[op.Path] = true
		if err := c.editOne(next, op); err != nil {
			return nil, err
		}
	}
	for p := range next {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := next[dir]; ok {
				return nil, fail(http.StatusBadRequest, "%s is a file and a folder", dir)
			}
		}
	}
	return next, nil
}

func (c *call) editOne(files map[string]File, op operation) (err error) {
	switch op.Key {
	case "file":
		files[op.Path], err = c.gitFile(op)
	case "lfsFile":
		err = c.putLarge(files, op)
	case "deletedFile":
		if _, ok := files[op.Path]; !ok {
			return errEntryNotFound(op.Path)
		}
		delete(files, op.Path)
		if c.cfg.OneRow {
			delete(c.repo.rows, op.Path)
		}
	default:
		return fail(http.StatusBadRequest, "unknown operation %q", op.Key)
	}
	return err
}

// putLarge puts a large file into a commit, in the ways of the server.
func (c *call) putLarge(files map[string]File, op operation) error {
	f, err := c.lfsFile(op)
	if err != nil {
		return err
	}
	row, described := c.repo.rows[op.Path]
	switch {
	case c.cfg.OneRow && described && row == f:
		return nil
	case c.cfg.OldSizes && c.r.PathValue("rev") == "main" && described:
		f.Size = row.Size
	case c.cfg.OneRow, c.cfg.OldSizes && c.r.PathValue("rev") == "main":
		c.repo.rows[op.Path] = f
	}
	files[op.Path] = f
	if text, line := files[attributesFile].content, attributesLine(op.Path); !c.cfg.NoTracking &&
		!named(text, op.Path) && !strings.Contains("\n"+text, "\n"+line) {
		files[attributesFile] = gitFile(text + line)
	}
	return nil
}

func (c *call) gitFile(op operation) (File, error) {
	content := op.Content
	if op.Encoding == "base64" {
		raw, err := base64.StdEncoding.DecodeString(op.Content)
		if err != nil {
			return File{}, fail(http.StatusBadRequest, "%s: content is not base64", op.Path)
		}
		content = string(raw)
	}
	if int64(len(content)) > max(c.cfg.lfsThreshold, c.cfg.limit(ruleGitFile)) {
		return File{}, ruleGitFile.refuse(op.Path)
	}
	return gitFile(content), nil
}

func (c *call) lfsFile(op operation) (File, error) {
	o := c.objects[op.OID]
	switch {
	case !c.repo.holds[op.OID] || o == nil:
		return File{}, fail(http.StatusBadRequest,
			"Your push was rejected because an LFS pointer pointed to a file that does not exist: %s (%s)", op.Path, op.OID)
	case op.Algo != "" && op.Algo != "sha256":
		return File{}, fail(http.StatusBadRequest, "%s: unknown algo %q", op.Path, op.Algo)
	case op.Size != nil && *op.Size != o.size:
		return File{}, fail(http.StatusBadRequest, "%s: size %d does not match the object's %d",
			op.Path, *op.Size, o.size)
	}
	return largeFile(o.sha256, o.size), nil
}

// checkPath refuses paths that git or the hub would not store.
func checkPath(p string) error {
	if p == "" || path.Clean(p) != p || path.IsAbs(p) || strings.Contains(p, "\\") ||
		slices.ContainsFunc(strings.Split(p, "/"),
			func(seg string) bool {
				return seg == ".." || seg == "." || strings.EqualFold(seg, ".git") ||
					int64(len(seg)) > ruleFileName.Limit
			}) {
		return ruleFileName.refuse(p)
	}
	return nil
}
