package hubtest

import (
	"encoding/base64"
	"net/http"
)

// maxPreupload is the number of files that one call may ask about.
const maxPreupload = 256

type preuploadRequest struct {
	Files []struct {
		Path   string `json:"path"`
		Sample string `json:"sample"`
		Size   int64  `json:"size"`
	} `json:"files"`
	GitIgnore     string `json:"gitIgnore"`
	GitAttributes string `json:"gitAttributes"`
}

// preupload answers POST /api/models/{id}/preupload/{rev}: which files go by LFS, which are ignored, which are there
// already.
func preupload(c *call, q preuploadRequest) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	if len(q.Files) > maxPreupload {
		return nil, fail(http.StatusRequestEntityTooLarge, "too many files: %d", len(q.Files))
	}
	attributes := append(parseRules(string(head.files[attributesFile].content), true), parseRules(q.GitAttributes, true)...)
	ignore := append(parseRules(string(head.files[".gitignore"].content), false), parseRules(q.GitIgnore, false)...)
	files := []map[string]any{}
	for _, f := range q.Files {
		if err := checkPath(f.Path); err != nil {
			return nil, err
		}
		sample, err := base64.StdEncoding.DecodeString(f.Sample)
		if err != nil {
			return nil, fail(http.StatusBadRequest, "%s: sample is not base64", f.Path)
		}
		mode := "regular"
		if c.cfg.wantsLFS(attributes, f.Path, sample, f.Size) {
			mode = "lfs"
		}
		m := map[string]any{"path": f.Path, "uploadMode": mode, "shouldIgnore": ignore.match(f.Path)}
		if e, ok := head.files[f.Path]; ok {
			m["oid"] = e.oid
			if e.isLFS() {
				m["oid"] = e.sha256
			}
		}
		files = append(files, m)
	}
	return map[string]any{"files": files, "commitOid": head.oid}, nil
}
