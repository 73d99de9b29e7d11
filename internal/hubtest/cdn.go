package hubtest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	amzDate        = "20060102T150405Z"
	signatureField = "&X-Amz-Signature="
	maxSinglePut   = 5 << 30 // S3's limit for one PUT
	putPiece       = 1 << 20 // bytes of a single PUT that are read and stored at a time
)

// cdn is the storage host: it signs URLs, and serves and takes large files at them.
type cdn struct {
	*Server
	secret []byte

	mu       sync.Mutex
	sessions map[string]*session
}

func newCDN(s *Server) *cdn {
	c := &cdn{Server: s, secret: make([]byte, 32), sessions: map[string]*session{}}
	_, _ = rand.Read(c.secret)
	return c
}

// signDownload makes the URL that a large file is fetched from.
func (c *cdn) signDownload(sha, file string) string {
	p := "/repos/" + sha[:2] + "/" + sha[2:4] + "/" + sha
	name := path.Base(file)
	disposition := "response-content-disposition=" + url.QueryEscape(fmt.Sprintf("inline; filename*=UTF-8''%s; filename=%q;", name, name))
	return c.sign(http.MethodGet, p, disposition, c.cfg.downloadTTL)
}

// sign makes an S3-style URL for one method. The signature covers path and query as they are written, so a client that
// decodes and encodes them again breaks it.
func (c *cdn) sign(method, p, query string, ttl time.Duration) string {
	q := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=hubtest%2Fus-east-1%2Fs3%2Faws4_request" +
		"&X-Amz-Date=" + c.cfg.clock().UTC().Format(amzDate) + fmt.Sprintf("&X-Amz-Expires=%d", int(ttl/time.Second)) +
		"&X-Amz-SignedHeaders=host&" + query
	return c.CDNURL + p + "?" + q + signatureField + c.mac(method, p, q)
}

func (c *cdn) mac(method, p, query string) string {
	m := hmac.New(sha256.New, c.secret)
	fmt.Fprintf(m, "%s\n%s?%s", method, p, query)
	return hex.EncodeToString(m.Sum(nil))
}

// check verifies signature and expiry of the URL.
func (c *cdn) check(r *http.Request) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	raw := r.URL.RawQuery
	i := strings.LastIndex(raw, signatureField)
	if i < 0 {
		return failStorage(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	got := raw[i+len(signatureField):]
	switch {
	case !hmac.Equal([]byte(got), []byte(c.mac(method, r.URL.EscapedPath(), raw[:i]))):
		c.violation("signed URL was changed: %s %s", r.Method, r.URL.Path)
		return failStorage(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
	case r.Header.Get("Authorization") != "":
		return failStorage(http.StatusBadRequest, "InvalidArgument", "Only one auth mechanism allowed")
	case !c.cfg.clock().Before(expiry(r.URL.Query())):
		return errExpired
	}
	return nil
}

func expiry(q url.Values) time.Time {
	start, _ := time.Parse(amzDate, q.Get("X-Amz-Date"))
	seconds, _ := strconv.Atoi(q.Get("X-Amz-Expires"))
	return start.Add(time.Duration(seconds) * time.Second)
}

// failStorage is a refusal of the storage host, which speaks XML.
func failStorage(status int, code, message string) *refusal {
	return &refusal{status: status, code: code, message: message, xml: true}
}

var (
	errExpired    = failStorage(http.StatusForbidden, "AccessDenied", "Request has expired")
	errIncomplete = failStorage(http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")
)

func (c *cdn) routes() http.Handler {
	return mux(map[string]handler{
		"GET /repos/{a}/{b}/{sha}":        c.signed(c.getObject),
		"PUT /upload/{ns}/{name}/{sha}":   c.signed(c.putObject),
		"PUT /multipart/{session}/{part}": c.signed(c.putPart),
	})
}

// signed lets h answer requests whose URL is signed and has not expired.
func (c *cdn) signed(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := c.check(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// getObject serves the bytes of a large file, with ranges.
func (c *cdn) getObject(w http.ResponseWriter, r *http.Request) error {
	c.store.mu.Lock()
	o := c.objects[r.PathValue("sha")]
	c.store.mu.Unlock()
	if o == nil {
		return failStorage(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	body, err := o.reader()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+o.sha256[:32]+`"`) // not the hub's: the storage has its own
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, body)
	return nil
}

// checkPut refuses what S3 refuses before it reads a body.
func checkPut(r *http.Request) error {
	switch {
	case r.ContentLength < 0:
		return failStorage(http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented: Transfer-Encoding")
	case r.ContentLength > maxSinglePut:
		return failStorage(http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
	}
	return nil
}

// putObject takes a whole file. Whether it is the right one shows at verify.
func (c *cdn) putObject(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	parts, sum := c.cfg.assemble(putPiece, r.ContentLength), uint32(0)
	for n, left := 1, r.ContentLength; left > 0; n++ {
		piece, err := receive(r, min(left, putPiece))
		if err != nil {
			return err
		}
		left -= int64(len(piece))
		sum = crc32.Update(sum, crc32.IEEETable, piece)
		parts.put(n, piece)
	}
	if o := parts.object(); o.sha256 == r.PathValue("sha") {
		c.hold(r.PathValue("ns")+"/"+r.PathValue("name"), o)
	}
	w.Header().Set("ETag", etag(sum))
	w.WriteHeader(http.StatusOK)
	return nil
}

// receive reads n bytes of a request body.
func receive(r *http.Request, n int64) ([]byte, error) {
	p := make([]byte, n)
	if _, err := io.ReadFull(r.Body, p); err != nil {
		return nil, errIncomplete
	}
	return p, nil
}

// etag is the ETag of uploaded bytes, quotes included. Clients may not look into it, so a checksum does that is cheaper
// than S3's MD5.
func etag(sum uint32) string { return fmt.Sprintf(`"%032x"`, sum) }

// putPart takes one part of a multipart upload.
func (c *cdn) putPart(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	ses := c.session(r.PathValue("session"))
	n, err := strconv.Atoi(r.PathValue("part"))
	if ses == nil || err != nil || n < 1 || n > ses.nParts() {
		return failStorage(http.StatusNotFound, "NoSuchUpload", "The specified multipart upload does not exist.")
	}
	if want := ses.partSize(n); r.ContentLength != want {
		return failStorage(http.StatusBadRequest, "InvalidPart", fmt.Sprintf("part %d must have %d bytes", n, want))
	}
	part, err := receive(r, r.ContentLength)
	if err != nil {
		return err
	}
	tag, err := ses.put(n, part)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tag)
	w.WriteHeader(http.StatusOK)
	return nil
}
