package hubtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

func tree(c *call) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	return c.page(c.list(head))
}

func isTrue(v string) bool {
	ok, _ := strconv.ParseBool(strings.ToLower(v))
	return ok
}

// list returns all entries of a commit, including folders, sorted by path.
func (c *call) list(head *Commit) (out []map[string]any) {
	found := map[string]map[string]any{}
	for p, e := range head.Files {
		found[p] = c.fileEntry(p, e)
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			found[dir] = head.dirEntry(dir)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[p])
	}
	return out
}

func (c *call) fileEntry(p string, e File) map[string]any {
	e = c.described(p, e)
	m := map[string]any{"type": "file", "oid": e.BlobID, "size": e.Size, "path": p}
	if e.isLFS() {
		m["lfs"] = map[string]any{"oid": e.SHA256, "size": e.Size,
			"pointerSize": len(pointer(e.SHA256, e.Size))}
		if c.cfg.xetHashes {
			m["xetHash"] = xetHash(e.SHA256)
		}
	}
	return m
}

// described returns a file as the server lists it.
func (c *call) described(p string, e File) File {
	if row, ok := c.repo.rows[p]; ok && c.cfg.OneRow && e.isLFS() {
		e.SHA256 = row.SHA256
	}
	return e
}

// xetHash returns a stand-in for Xet's Merkle hash: 64 hex digits per object that aren't its
// SHA-256.
func xetHash(sha string) string { return newObject([]byte("xet " + sha)).sha256 }

func (c *Commit) dirEntry(p string) map[string]any {
	return map[string]any{"type": "directory", "oid": blobID([]byte(c.OID + p)), "size": 0,
		"path": p}
}

// page returns one page of a list and sets the Link to the next.
func (c *call) page(list []map[string]any) (any, error) {
	q := c.r.URL.Query()
	size := c.cfg.pageSize
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		size = min(size, n)
	}
	start, err := strconv.Atoi(cmp.Or(q.Get("cursor"), "0"))
	if err != nil || start < 0 || start > len(list) {
		return nil, fail(http.StatusBadRequest, "invalid cursor")
	}
	end := min(start+size, len(list))
	if end < len(list) {
		q.Set("cursor", strconv.Itoa(end))
		next := c.URL + c.r.URL.EscapedPath() + "?" + q.Encode()
		c.w.Header().Set("Link", fmt.Sprintf("<%s>; rel=%q", next, "next"))
	}
	return append([]map[string]any{}, list[start:end]...), nil // an empty page is [], not null
}

// readPaths reads a form, as Python sends it.
func readPaths(r *http.Request) ([]string, error) {
	if err := r.ParseForm(); err != nil {
		return nil, fail(http.StatusBadRequest, "invalid form: %v", err)
	}
	return r.PostForm["paths"], nil
}

// pathsInfo describes files; unknown ones are silently missing.
func pathsInfo(c *call, paths []string) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	out := []map[string]any{}
	for _, p := range paths {
		p = strings.Trim(path.Clean(p), "/")
		if e, ok := head.Files[p]; ok {
			out = append(out, c.fileEntry(p, e))
		}
	}
	return out, nil
}

// resolve answers GET and HEAD of /{id}/resolve/{rev}/{path} and
// /api/resolve-cache/models/{id}/{rev}/{path}. Large files are a redirect to a signed URL, and JSON
// files a relative redirect to the resolve cache. It sends other files at once.
func resolve(c *call) (any, error) {
	head, e, err := c.file()
	switch {
	case err != nil:
		return nil, err
	case e.isLFS():
		return c.toCDN(head, e), nil
	case strings.HasPrefix(c.r.URL.Path, "/api/"):
		c.w.Header().Set("Cache-Control", "public, max-age=31536000")
	case strings.HasSuffix(c.r.URL.Path, ".json"):
		return redirect(http.StatusTemporaryRedirect, "Temporary Redirect. Redirecting to ",
			c.cacheURL(head, e)), nil
	}
	return e.send(), nil
}

// file returns the file of a resolve route. Every answer for an existing revision has an
// X-Repo-Commit, including EntryNotFound.
func (c *call) file() (*Commit, File, error) {
	head, err := c.commit()
	if err != nil {
		return nil, File{}, err
	}
	c.w.Header().Set("X-Repo-Commit", head.OID)
	e, ok := head.Files[c.r.PathValue("path")]
	if !ok {
		return nil, File{}, failCode(http.StatusNotFound, codeEntryNotFound, "Entry not found")
	}
	return head, e, nil
}

// cacheURL returns the address in the resolve cache, with the odd query that the real hub appends.
func (c *call) cacheURL(head *Commit, e File) string {
	segments := strings.Split(c.r.PathValue("path"), "/")
	for i, seg := range segments {
		segments[i] = url.PathEscape(seg)
	}
	return fmt.Sprintf("/api/resolve-cache/models/%s/%s/%s?%s=&etag=%s", c.repo.name, head.OID,
		strings.Join(segments, "/"),
		url.QueryEscape(c.r.URL.EscapedPath()), url.QueryEscape(`"`+e.BlobID+`"`))
}

// send answers with a git file.
func (f File) send() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("ETag", `"`+f.BlobID+`"`)
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Disposition", "inline")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(f.content))
	})
}

// toCDN redirects to the bytes of a large file.
func (c *call) toCDN(head *Commit, e File) http.Handler {
	h, stored := c.w.Header(), e.SHA256
	e = c.described(c.r.PathValue("path"), e)
	h.Set("X-Linked-Etag", `"`+e.SHA256+`"`)
	h.Set("X-Linked-Size", fmt.Sprint(e.Size))
	h.Set("ETag", `"`+e.BlobID+`"`)
	h.Set("Accept-Ranges", "bytes")
	if c.cfg.xetHashes {
		hash, auth := xetHash(e.SHA256), "/api/models/"+c.repo.name+"/xet-read-token/"+head.OID
		h.Set("X-Xet-Hash", hash)
		h.Set("Link",
			"<"+c.URL+auth+`>; rel="xet-auth", <`+c.CDNURL+"/v1/reconstructions/"+hash+
				`>; rel="xet-reconstruction-info"`)
	}
	if c.cfg.AnswersHead && c.r.Method == http.MethodHead {
		h.Set("Content-Length", fmt.Sprint(e.Size))
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}
	return redirect(http.StatusFound, "Found. Redirecting to ",
		c.signDownload(stored, c.r.PathValue("path")))
}

func redirect(status int, text, location string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		writeBody(w, status, "text/plain; charset=utf-8", []byte(text+location))
	})
}
