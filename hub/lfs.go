package hub

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
)

const lfsJSON = "application/vnd.git-lfs+json"

// An lfsAction is something to do for an object.
type lfsAction struct {
	Href   string
	Header map[string]string
}

// headers returns the headers to send with the action.
func (a *lfsAction) headers() http.Header {
	h := http.Header{}
	for key, value := range a.Header {
		h.Set(key, value)
	}
	return h
}

// An lfsObject is the hub's answer about one object.
type lfsObject struct {
	OID     string
	Actions *struct{ Upload, Verify *lfsAction }
	Error   *struct {
		Code    int
		Message string
	}
}

// stored reports whether the hub has the object and wants nothing.
func (o *lfsObject) stored() bool { return o.Actions == nil || o.Actions.Upload == nil }

// batch asks where objects are to go. Ask just before their upload, because the links live only
// minutes.
func batch(ctx context.Context, files []*upload) error {
	u, objects := files[0], map[string]any{}
	for _, f := range files {
		objects[f.SHA256] = map[string]any{"oid": f.SHA256, "size": f.Size}
	}
	body := map[string]any{
		"operation": "upload", "transfers": []string{"basic", "multipart"}, "hash_algo": "sha256",
		"objects": slices.Collect(maps.Values(objects)), "ref": map[string]string{"name": u.rev},
	}
	r := u.ask("ask where to upload "+listOf(files),
		u.t.endpoint.page(u.repo, ".git/info/lfs/objects/batch"), body)
	return u.t.retry(ctx, r, func(ctx context.Context) error {
		var answer struct{ Objects []lfsObject }
		_, err := u.t.callOnce(ctx, r, &answer)
		for _, f := range files {
			if err == nil {
				f.object, err = f.objectIn(r, answer.Objects)
			}
		}
		return err
	})
}

// ask returns a request of the LFS protocol.
func (u *upload) ask(what, url string, body any) *request {
	r := sendRequest(what, u.repo, http.MethodPost, url, body)
	r.header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	return r
}

// objectIn returns the file's object in the answer. The hub may refuse an object, for good or for
// now, inside a 200 answer (LFS, "Response Errors").
func (u *upload) objectIn(r *request, objects []lfsObject) (*lfsObject, error) {
	at := slices.IndexFunc(objects, func(o lfsObject) bool { return o.OID == u.SHA256 })
	if at < 0 {
		return nil, u.t.errorf(r.op, ErrNotHub, "the answer does not name the object")
	}
	obj := &objects[at]
	if obj.Error != nil {
		e := u.t.refusedInside(r, obj.Error.Code, obj.Error.Message)
		e.Op = "ask where to upload " + u.Path
		return nil, e
	}
	return obj, nil
}

// verify makes the hub check that it has the object, as LFS's basic transfers ask
// (basic-transfers.md#verification). If it has another one, our bytes or their hash are wrong, and
// no repeat helps: hfd and KohakuHub answer 400 to another size, and LFS has 422 for what isn't
// valid.
func (u *upload) verify(ctx context.Context, a *lfsAction) error {
	r := u.ask("verify the upload of "+u.Path, u.t.endpoint.rewrite(a.Href),
		map[string]any{"oid": u.SHA256, "size": u.Size})
	maps.Copy(r.header, a.headers())
	_, err := u.t.call(ctx, r, nil)
	e := errorOf(err)
	if errors.Is(e, ErrNotHub) {
		return err
	}
	switch e.Status {
	case http.StatusNotFound:
		return e.under(errStale) // it never arrived; the batch call will say so
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return e.under(ErrCorrupt)
	}
	return err
}

// DuplicateFiles makes the hub copy large files from one repo's Xet storage to another's, without
// moving their bytes, as hf_api.py of the Python client does. Commit LFSOps for them afterward. The
// files come from Tree. It returns the SHA-256 of those that couldn't be copied. Upload those, and
// all files after an error.
func (c *Client) DuplicateFiles(ctx context.Context, source, target string,
	files []FileInfo) (failed map[string]bool, err error) {
	var rows []map[string]string
	for _, f := range files {
		rows = append(rows,
			map[string]string{"xetHash": f.XetHash, "sha256": f.SHA256, "filename": f.Path})
	}
	r := c.t.repoSend("copy files from "+source+" to "+target, source, http.MethodPost,
		"/lfs-files/duplicate",
		map[string]any{"target": map[string]string{"type": "model", "name": target}, "files": rows})
	r.slow = slowAnswer
	var answer struct {
		Failed []struct{ SHA256 string }
	}
	_, err = c.t.call(ctx, r, &answer)
	failed = map[string]bool{}
	for _, f := range answer.Failed {
		failed[f.SHA256] = true
	}
	return failed, err
}
