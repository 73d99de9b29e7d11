package hubtest

import (
	"encoding/base64"
	"net/http"
)

// maxPreupload is the number of files that one call may ask about.
const maxPreupload = 256

// preupload answers POST /api/models/{id}/preupload/{rev}: which files go by
// LFS, which are ignored, which are there already.
func (s *Server) preupload(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessUpload)
	if err != nil {
		return err
	}
	c, err := s.commitAt(rp, r.PathValue("rev"))
	if err != nil {
		return err
	}
	var q struct {
		Files []struct {
			Path   string `json:"path"`
			Sample string `json:"sample"`
			Size   int64  `json:"size"`
		} `json:"files"`
		GitIgnore     string `json:"gitIgnore"`
		GitAttributes string `json:"gitAttributes"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if len(q.Files) > maxPreupload {
		return fail(http.StatusRequestEntityTooLarge, "too many files: %d", len(q.Files))
	}
	attributes := append(parseRules(string(c.files[attributesFile].content), true), parseRules(q.GitAttributes, true)...)
	ignore := append(parseRules(string(c.files[".gitignore"].content), false), parseRules(q.GitIgnore, false)...)
	files := []map[string]any{}
	for _, f := range q.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		sample, err := base64.StdEncoding.DecodeString(f.Sample)
		if err != nil {
			return fail(http.StatusBadRequest, "%s: sample is not base64", f.Path)
		}
		mode := "regular"
		if s.wantsLFS(attributes, f.Path, sample, f.Size) {
			mode = "lfs"
		}
		m := map[string]any{"path": f.Path, "uploadMode": mode, "shouldIgnore": ignore.match(f.Path)}
		if e, ok := c.files[f.Path]; ok {
			m["oid"] = e.oid
			if e.isLFS() {
				m["oid"] = e.sha256
			}
		}
		files = append(files, m)
	}
	writeJSON(w, http.StatusOK, map[string]any{"files": files, "commitOid": c.oid})
	return nil
}
