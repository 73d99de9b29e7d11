package hubtest

import (
	"net/http"
)

// maxDuplicate is the number of files that one call may copy.
const maxDuplicate = 500

// duplicate answers POST /api/models/{id}/lfs-files/duplicate: objects of this
// repo become objects of the target's store, without a commit.
func (s *Server) duplicate(w http.ResponseWriter, r *http.Request) error {
	src, u, err := s.repoFor(r, accessFiles)
	if err != nil {
		return err
	}
	var q struct {
		Target struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"target"`
		Files []struct {
			XetHash  string `json:"xetHash"`
			SHA256   string `json:"sha256"`
			Filename string `json:"filename"`
		} `json:"files"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if len(q.Files) > maxDuplicate {
		return fail(http.StatusBadRequest, "too many files: %d", len(q.Files))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dst := s.repos[q.Target.Name]
	if dst == nil || u == nil || !u.sees(dst) && dst.opts.Private {
		return errRepoNotFound(u == nil)
	}
	if err := s.permit(dst, u, accessWrite); err != nil {
		return err
	}
	failed := []map[string]any{}
	for _, f := range q.Files {
		switch {
		case !src.holds[f.SHA256]:
			failed = append(failed, map[string]any{"sha256": f.SHA256, "error": "file not found in the source repo"})
		case f.XetHash == "" || s.cfg.xetHashes && f.XetHash != xetHash(f.SHA256):
			failed = append(failed, map[string]any{"sha256": f.SHA256, "error": "file is not stored in Xet under this hash"})
		default:
			dst.holds[f.SHA256] = true
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"failed": failed})
	return nil
}
