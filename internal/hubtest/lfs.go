package hubtest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const lfsType = "application/vnd.git-lfs+json"

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

type lfsPointer struct {
	OID  string
	Size int64
}

type batchRequest struct {
	Operation string
	Transfers []string
	Objects   []lfsPointer
	HashAlgo  string `json:"hash_algo"`
}

// batchObjects answers POST /{id}.git/info/lfs/objects/batch.
func batchObjects(c *call, q batchRequest) (any, error) {
	switch {
	case q.Operation != "upload":
		return nil, fail(http.StatusBadRequest, "unknown operation %q", q.Operation)
	case !slices.Contains([]string{"", "sha256", "sha_256"}, q.HashAlgo):
		return nil, fail(http.StatusConflict, "unsupported hash algorithm %q", q.HashAlgo)
	}
	transfer, objects := "basic", []map[string]any{}
	for _, p := range q.Objects {
		m := map[string]any{"oid": p.OID, "size": p.Size, "authenticated": true}
		if c.batchObject(q, p, m) {
			transfer = "multipart"
		}
		objects = append(objects, m)
	}
	return map[string]any{"transfer": transfer, "objects": objects, "hash_algo": "sha256"}, nil
}

// batchObject decides how one object travels, and writes that into the object's part of the answer.
func (c *call) batchObject(q batchRequest, p lfsPointer, m map[string]any) (multipart bool) {
	refuse := func(code int, message string) bool {
		m["error"] = map[string]any{"code": code, "message": message}
		return false
	}
	if !sha256Hex.MatchString(p.OID) || p.Size < 0 {
		return refuse(http.StatusUnprocessableEntity, "Invalid object: "+p.OID)
	}
	if p.Size > c.cfg.limit(ruleFileSize) {
		return refuse(ruleFileSize.Status, ruleFileSize.Message)
	}
	if c.repo.holds[p.OID] {
		if o := c.objects[p.OID]; o != nil && o.size != p.Size {
			return refuse(http.StatusUnprocessableEntity, fmt.Sprintf("Object has size %d", o.size))
		}
		return false
	}
	if c.checkRoom(p.Size) != nil {
		return refuse(rulePrivate.Status, rulePrivate.Message)
	}
	var upload map[string]any
	if multipart = p.Size >= c.cfg.multipartFrom && slices.Contains(q.Transfers,
		"multipart"); multipart {
		upload = c.multipartAction(p)
	} else {
		upload = map[string]any{"href": c.sign(http.MethodPut, "/upload/"+c.repo.name+"/"+p.OID,
			"x-id=PutObject")}
	}
	if c.cfg.SendsOn {
		multipart = false
		upload = map[string]any{"href": c.URL + "/" + c.repo.name + ".git/lfs/objects/" + p.OID,
			"header": map[string]string{"Authorization": c.r.Header.Get("Authorization")}}
	}
	verify := map[string]any{"href": c.URL + "/" + c.repo.name + ".git/info/lfs/objects/verify"}
	m["actions"] = map[string]any{"upload": upload, "verify": verify}
	return multipart
}

// multipartAction opens a session and signs one URL per part.
func (c *call) multipartAction(p lfsPointer) map[string]any {
	ses := c.newSession(c.repo.name, p.OID, p.Size)
	header := map[string]string{"chunk_size": fmt.Sprint(ses.chunk)}
	for n := 1; n <= ses.nParts(); n++ {
		query := fmt.Sprintf("partNumber=%d&uploadId=%s&x-id=UploadPart", n, ses.id)
		header[fmt.Sprintf("%05d", n)] = c.sign(http.MethodPut,
			fmt.Sprintf("/multipart/%s/%d", ses.id, n), query)
	}
	href := fmt.Sprintf(
		"%s/api/complete_multipart?uploadId=%s&bucket=hub&prefix=%s&expiration=soon", c.URL, ses.id,
		strings.ReplaceAll(c.repo.name, "/", "%2F"))
	return map[string]any{"href": href, "header": header}
}

// sendOn sends an upload on to the storage, without reading it.
func sendOn(c *call) (any, error) {
	if !c.cfg.SendsOn {
		return nil, fail(http.StatusNotFound, "Not Found")
	}
	link := c.sign(http.MethodPut, "/upload/"+c.repo.name+"/"+c.r.PathValue("sha"), "x-id=PutObject")
	return http.RedirectHandler(link, http.StatusTemporaryRedirect), nil
}

func lfsVerify(c *call, p lfsPointer) (any, error) {
	o := c.objects[p.OID]
	switch {
	case !c.repo.holds[p.OID] || o == nil:
		return nil, fail(http.StatusNotFound,
			"Object %s was not uploaded, or its content has another hash", p.OID)
	case o.size != p.Size:
		return nil, fail(http.StatusUnprocessableEntity, "Object has size %d, not %d", o.size,
			p.Size)
	}
	c.w.Header().Set("Content-Type", lfsType)
	return nil, nil
}

// maxDuplicate is the number of files that one call may copy.
const maxDuplicate = 500

type duplicateRequest struct {
	Target struct{ Type, Name string }
	Files  []struct{ XetHash, SHA256, Filename string }
}

// duplicate answers POST /api/models/{id}/lfs-files/duplicate: this repo's objects become the
// target's too, without a commit.
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
			failed = append(failed,
				map[string]any{"sha256": f.SHA256, "error": "file not found in the source repo"})
		case f.XetHash == "" || c.cfg.xetHashes && f.XetHash != xetHash(f.SHA256):
			failed = append(failed, map[string]any{"sha256": f.SHA256,
				"error": "file is not stored in Xet under this hash"})
		default:
			dst.holds[f.SHA256] = true
		}
	}
	return map[string]any{"failed": failed}, nil
}
