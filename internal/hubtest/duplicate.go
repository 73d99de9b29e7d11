package hubtest

import "net/http"

// maxDuplicate is the number of files that one call may copy.
const maxDuplicate = 500

type duplicateRequest struct {
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

// duplicate answers POST /api/models/{id}/lfs-files/duplicate: objects of this repo become objects of the target's store,
// without a commit.
func duplicate(c *call, q duplicateRequest) (any, error) {
	if len(q.Files) > maxDuplicate {
		return nil, fail(http.StatusBadRequest, "too many files: %d", len(q.Files))
	}
	dst := c.repos[q.Target.Name]
	if dst == nil || c.user == nil || !c.user.sees(dst) && dst.opts.Private {
		return nil, errRepoNotFound(c.user == nil)
	}
	if err := c.permit(dst, accessWrite); err != nil {
		return nil, err
	}
	failed := []map[string]any{}
	for _, f := range q.Files {
		switch {
		case !c.repo.holds[f.SHA256]:
			failed = append(failed, map[string]any{"sha256": f.SHA256, "error": "file not found in the source repo"})
		case f.XetHash == "" || c.cfg.xetHashes && f.XetHash != xetHash(f.SHA256):
			failed = append(failed, map[string]any{"sha256": f.SHA256, "error": "file is not stored in Xet under this hash"})
		default:
			dst.holds[f.SHA256] = true
		}
	}
	return map[string]any{"failed": failed}, nil
}
