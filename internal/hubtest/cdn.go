package hubtest

import (
	"crypto/hmac"
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
	"time"
)

const (
	signatureField = "&X-Amz-Signature="
	maxSinglePut   = 5 << 30 // S3's limit for one PUT
	// how long links are valid, as seen at the Hub: of downloads, and of uploads
	downloadTTL, uploadTTL = time.Hour, 15 * time.Minute
	amzDate                = "20060102T150405Z"
	putPiece               = 1 << 20 // bytes of a single PUT that are read and stored at a time
)

// signDownload returns the URL to fetch a large file from.
func (s *Server) signDownload(sha, file string) string {
	p := "/repos/" + sha[:2] + "/" + sha[2:4] + "/" + sha
	name := path.Base(file)
	disposition := "response-content-disposition=" + url.QueryEscape(
		fmt.Sprintf("inline; filename*=UTF-8''%s; filename=%q;", name, name))
	return s.sign(http.MethodGet, p, disposition)
}

// sign returns an S3-style URL for one method, different each time. The signature covers path and
// query as written, so a client that decodes and encodes them again breaks it.
func (s *Server) sign(method, p, query string) string {
	ttl := uploadTTL
	if method == http.MethodGet {
		ttl = downloadTTL
	}
	q := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=hubtest%2Fus-east-1%2Fs3%2Faws4_request" +
		"&X-Amz-Date=" + s.cfg.clock().UTC().Format(amzDate) + fmt.Sprintf(
		"&X-Amz-Expires=%d&X-Amz-Security-Token=%d", int(ttl.Seconds()), s.links.Add(1)) +
		"&X-Amz-SignedHeaders=host&" + query
	return s.CDNURL + p + "?" + q + signatureField + s.mac(method, p, q)
}

func (s *Server) mac(method, p, query string) string {
	m := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(m, "%s\n%s?%s", method, p, query)
	return hex.EncodeToString(m.Sum(nil))
}

// checkURL checks the URL's signature, and that it's still valid.
func (s cdn) checkURL(r *http.Request) error {
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
	case !hmac.Equal([]byte(got), []byte(s.mac(method, r.URL.EscapedPath(), raw[:i]))):
		s.violation("signed URL was changed: %s %s", r.Method, r.URL.Path)
		return failStorage(http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided.")
	case r.Header.Get("Authorization") != "":
		return failStorage(http.StatusBadRequest, "InvalidArgument",
			"Only one auth mechanism allowed")
	case s.isOver(r.URL.Query()):
		return errExpired
	}
	if s.cfg.linksForOnce {
		if _, used := s.used.LoadOrStore(got, true); used {
			return errExpired
		}
	}
	return nil
}

// isOver reports whether the time of a signed URL is over.
func (s cdn) isOver(q url.Values) bool {
	signed, err := time.Parse(amzDate, q.Get("X-Amz-Date"))
	seconds, secondsErr := strconv.Atoi(q.Get("X-Amz-Expires"))
	return err != nil || secondsErr != nil ||
		s.cfg.clock().After(signed.Add(time.Duration(seconds)*time.Second))
}

// failStorage is a refusal by the storage host, in XML.
func failStorage(status int, code, message string) *refusal {
	return &refusal{status: status, code: code, message: message, xml: true}
}

var (
	errExpired    = failStorage(http.StatusForbidden, "AccessDenied", "Request has expired")
	errIncomplete = failStorage(http.StatusBadRequest, "RequestTimeout",
		"Your socket connection to the server was not read from or written to within the timeout period.")
)

// cdn is the storage host of a server.
type cdn struct{ *Server }

func (s cdn) routes() http.Handler {
	return mux(map[string]handler{
		"GET /repos/{a}/{b}/{sha}":        s.signed(s.getObject),
		"PUT /upload/{ns}/{name}/{sha}":   s.signed(s.putObject),
		"PUT /multipart/{session}/{part}": s.signed(s.putPart),
	})
}

// signed lets h answer requests with a valid signed URL.
func (s cdn) signed(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.checkURL(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// getObject serves the bytes of a large file, with ranges.
func (s cdn) getObject(w http.ResponseWriter, r *http.Request) error {
	s.store.mu.Lock()
	o := s.objects[r.PathValue("sha")]
	s.store.mu.Unlock()
	if o == nil {
		return failStorage(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	body, err := o.reader()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+o.sha256[:32]+`"`) // not the hub's ETag: the storage has its own
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, body)
	return nil
}

// checkPut refuses what S3 refuses before it reads a body.
func checkPut(r *http.Request) error {
	switch {
	case r.ContentLength < 0:
		return failStorage(http.StatusNotImplemented, "NotImplemented",
			"A header you provided implies functionality that is not implemented: Transfer-Encoding")
	case r.ContentLength > maxSinglePut:
		return failStorage(http.StatusBadRequest, "EntityTooLarge",
			"Your proposed upload exceeds the maximum allowed size")
	}
	return nil
}

// putObject stores a whole file. Only verify shows whether it's the right one.
func (s cdn) putObject(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	parts, sum := s.cfg.assemble(putPiece, r.ContentLength), uint32(0)
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
		s.hold(r.PathValue("ns")+"/"+r.PathValue("name"), o)
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

// etag returns the ETag of uploaded bytes, quotes included. Clients may not read anything into it,
// so we use a cheaper checksum than S3's MD5.
func etag(sum uint32) string { return fmt.Sprintf(`"%032x"`, sum) }

// putPart stores one part of a multipart upload.
func (s cdn) putPart(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	ses := s.session(r.PathValue("session"))
	n, err := strconv.Atoi(r.PathValue("part"))
	if ses == nil || err != nil || n < 1 || n > ses.nParts() {
		return failStorage(http.StatusNotFound, "NoSuchUpload",
			"The specified multipart upload does not exist.")
	}
	if want := ses.partSize(n); r.ContentLength != want {
		return failStorage(http.StatusBadRequest, "InvalidPart",
			fmt.Sprintf("part %d must have %d bytes", n, want))
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
