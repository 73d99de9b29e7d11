package hubtest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tree answers GET /api/models/{id}/tree/{rev}[/{path}].
func (s *Server) tree(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	c, err := s.commitAt(rp, r.PathValue("rev"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	dir := strings.Trim(r.PathValue("path"), "/")
	list := s.list(c, dir, isTrue(q.Get("recursive")), isTrue(q.Get("expand")))
	if len(list) == 0 && dir != "" {
		w.Header().Set("X-Repo-Commit", c.oid)
		return errEntryNotFound(dir)
	}
	return writePage(s, w, r, list)
}

func isTrue(v string) bool {
	ok, _ := strconv.ParseBool(strings.ToLower(v))
	return ok
}

// list returns the entries below dir, sorted by path, folders included.
func (s *Server) list(c *commit, dir string, recursive, expand bool) []map[string]any {
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	found := map[string]map[string]any{}
	for p, e := range c.files {
		rest, ok := strings.CutPrefix(p, prefix)
		if !ok {
			continue
		}
		for i, ch := range rest {
			if ch == '/' && (recursive || !strings.Contains(rest[:i], "/")) {
				found[prefix+rest[:i]] = c.dirEntry(prefix+rest[:i], expand)
			}
		}
		if recursive || !strings.Contains(rest, "/") {
			found[p] = s.fileEntry(c, p, e, expand)
		}
	}
	var out []map[string]any
	for _, p := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[p])
	}
	return out
}

func (s *Server) fileEntry(c *commit, p string, e entry, expand bool) map[string]any {
	m := map[string]any{"type": "file", "oid": e.oid, "size": e.size, "path": p}
	if e.isLFS() {
		m["lfs"] = map[string]any{"oid": e.sha256, "size": e.size, "pointerSize": len(pointer(e.sha256, e.size))}
		if s.cfg.xetHashes {
			m["xetHash"] = xetHash(e.sha256)
		}
	}
	if expand {
		m["lastCommit"] = c.last()
		m["securityFileStatus"] = map[string]any{"status": "safe"}
	}
	return m
}

func (c *commit) dirEntry(p string, expand bool) map[string]any {
	m := map[string]any{"type": "directory", "oid": blobID([]byte(c.oid + p)), "size": 0, "path": p}
	if expand {
		m["lastCommit"] = c.last()
	}
	return m
}

func (c *commit) last() map[string]any {
	return map[string]any{"id": c.oid, "title": c.title, "date": c.date.UTC().Format(time.RFC3339Nano)}
}

// expandedPage is the page size of a tree with expand=true.
const expandedPage = 50

// writePage writes one page of a list and the Link to the next one.
func writePage(s *Server, w http.ResponseWriter, r *http.Request, list []map[string]any) error {
	q := r.URL.Query()
	size := s.cfg.pageSize
	if isTrue(q.Get("expand")) {
		size = min(size, expandedPage)
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		size = min(size, n)
	}
	start, err := decodeCursor(q.Get("cursor"))
	if err != nil || start > len(list) {
		return fail(http.StatusBadRequest, "invalid cursor")
	}
	end := min(start+size, len(list))
	if end < len(list) {
		q.Set("cursor", encodeCursor(end))
		next := s.URL + r.URL.EscapedPath() + "?" + q.Encode()
		w.Header().Set("Link", fmt.Sprintf("<%s>; rel=%q", next, "next"))
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(len(list)))
	page := list[start:end]
	if page == nil {
		page = []map[string]any{}
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

func encodeCursor(n int) string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "after:%d", n))
}

func decodeCursor(text string) (n int, err error) {
	if text == "" {
		return 0, nil
	}
	raw, err := base64.URLEncoding.DecodeString(text)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimPrefix(string(raw), "after:"))
}

// maxPaths is where the hub starts to answer 413 to paths-info.
const maxPaths = 1000

// pathsInfo answers POST /api/models/{id}/paths-info/{rev}; unknown paths are
// silently missing.
func (s *Server) pathsInfo(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	c, err := s.commitAt(rp, r.PathValue("rev"))
	if err != nil {
		return err
	}
	paths, expand, err := pathsOf(r)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for _, p := range paths {
		p = strings.Trim(path.Clean(p), "/")
		if e, ok := c.files[p]; ok {
			out = append(out, s.fileEntry(c, p, e, expand))
		} else if len(s.list(c, p, false, false)) > 0 {
			out = append(out, c.dirEntry(p, expand))
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// pathsOf reads the form that Python sends, or the JSON body that JS sends.
func pathsOf(r *http.Request) (paths []string, expand bool, err error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var body struct {
			Paths  []string `json:"paths"`
			Expand bool     `json:"expand"`
		}
		err = readJSON(r, &body)
		paths, expand = body.Paths, body.Expand
	} else {
		if err := r.ParseForm(); err != nil {
			return nil, false, fail(http.StatusBadRequest, "invalid form: %v", err)
		}
		paths, expand = r.PostForm["paths"], isTrue(r.PostForm.Get("expand"))
	}
	if err == nil && len(paths) > maxPaths {
		err = fail(http.StatusRequestEntityTooLarge, "too many paths: %d", len(paths))
	}
	return paths, expand, err
}
