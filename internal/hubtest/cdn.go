package hubtest

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	amzDate      = "20060102T150405Z"
	maxSinglePut = 5 << 30 // S3's limit for one PUT
)

// signDownload makes the URL that a large file is fetched from.
func (s *Server) signDownload(sha, file string) string {
	p := "/repos/" + sha[:2] + "/" + sha[2:4] + "/" + sha
	name := path.Base(file)
	disposition := "response-content-disposition=" + url.QueryEscape(fmt.Sprintf("inline; filename*=UTF-8''%s; filename=%q;", name, name))
	if s.cfg.cloudFront {
		return s.signCloudFront(p, disposition)
	}
	return s.sign(http.MethodGet, p, disposition, s.cfg.downloadTTL)
}

// sign makes an S3-style URL for one method. The signature covers path and
// query as they are written, so a client that decodes and encodes them again
// breaks it.
func (s *Server) sign(method, p, query string, ttl time.Duration) string {
	q := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=hubtest%2Fus-east-1%2Fs3%2Faws4_request" +
		"&X-Amz-Date=" + s.cfg.clock().UTC().Format(amzDate) + fmt.Sprintf("&X-Amz-Expires=%d", int(ttl/time.Second)) +
		"&X-Amz-SignedHeaders=host"
	if query != "" {
		q += "&" + query
	}
	return s.CDNURL + p + "?" + q + "&X-Amz-Signature=" + s.mac(method, p, q)
}

func (s *Server) signCloudFront(p, query string) string {
	expires := s.cfg.clock().Add(s.cfg.downloadTTL).Unix()
	policy := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"Statement":[{"Resource":%q}]}`, s.CDNURL+p))
	q := fmt.Sprintf("%s&Expires=%d&Policy=%s&Key-Pair-Id=KHUBTEST", query, expires, policy)
	return s.CDNURL + p + "?" + q + "&Signature=" + s.mac(http.MethodGet, p, q)
}

func (s *Server) mac(method, p, query string) string {
	m := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(m, "%s\n%s?%s", method, p, query)
	return hex.EncodeToString(m.Sum(nil))
}

// storageError is an answer of the storage host, which speaks XML.
type storageError struct {
	status        int
	code, message string
}

func (e storageError) write(w http.ResponseWriter) {
	body := fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>HUBTEST</RequestId></Error>", e.code, e.message)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(e.status)
	_, _ = io.WriteString(w, body)
}

func (e storageError) Error() string { return e.code + ": " + e.message }

var errExpired = storageError{http.StatusForbidden, "AccessDenied", "Request has expired"}

// checkSigned verifies signature and expiry of the URL.
func (s *Server) checkSigned(r *http.Request) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	raw := r.URL.RawQuery
	i := max(strings.LastIndex(raw, "&X-Amz-Signature="), strings.LastIndex(raw, "&Signature="))
	if i < 0 {
		return storageError{http.StatusForbidden, "AccessDenied", "Access Denied"}
	}
	_, got, _ := strings.Cut(raw[i+1:], "=")
	if !hmac.Equal([]byte(got), []byte(s.mac(method, r.URL.EscapedPath(), raw[:i]))) {
		s.log.violation("signed URL was changed: %s %s", r.Method, r.URL.Path)
		return storageError{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	}
	if r.Header.Get("Authorization") != "" {
		return storageError{http.StatusBadRequest, "InvalidArgument", "Only one auth mechanism allowed"}
	}
	if !s.cfg.clock().Before(expiry(r.URL.Query())) {
		return errExpired
	}
	return nil
}

func expiry(q url.Values) time.Time {
	if unix, err := strconv.ParseInt(q.Get("Expires"), 10, 64); err == nil {
		return time.Unix(unix, 0)
	}
	start, _ := time.Parse(amzDate, q.Get("X-Amz-Date"))
	seconds, _ := strconv.Atoi(q.Get("X-Amz-Expires"))
	return start.Add(time.Duration(seconds) * time.Second)
}

func (s *Server) cdnRoutes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := s.checkSigned(r)
			if err == nil {
				err = h(w, r)
			}
			if err != nil {
				drain(r)
				writeStorageError(w, err)
			}
		})
	}
	handle("GET /repos/{a}/{b}/{sha}", s.getObject)
	handle("PUT /upload/{ns}/{name}/{sha}", s.putObject)
	handle("PUT /multipart/{session}/{part}", s.putPart)
	return mux
}

func writeStorageError(w http.ResponseWriter, err error) {
	var xml storageError
	var api *apiError
	switch {
	case errors.As(err, &xml):
	case errors.As(err, &api):
		xml = storageError{api.status, "Error", api.message}
	default:
		xml = storageError{http.StatusInternalServerError, "InternalError", err.Error()}
	}
	xml.write(w)
}

// getObject serves the bytes of a large file, with ranges.
func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	o := s.objectBy(r.PathValue("sha"))
	if o == nil {
		return storageError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	}
	if r.Method == http.MethodGet && r.Header.Get("Range") == "" && o.size > s.cfg.unrangedLimit {
		return storageError{http.StatusBadRequest, "InvalidRequest", "file too large for a request without a range"}
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
		return storageError{http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented: Transfer-Encoding"}
	case r.ContentLength > maxSinglePut:
		return storageError{http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"}
	}
	return nil
}

// putObject takes a whole file. Whether it is the right one shows at verify.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	dst, err := s.newSink()
	if err != nil {
		return err
	}
	sum := md5.New()
	n, err := io.CopyBuffer(onlyWriter{io.MultiWriter(dst, sum)}, onlyReader{r.Body}, make([]byte, 256<<10))
	if err != nil || n != r.ContentLength {
		dst.discard()
		return storageError{http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."}
	}
	o, err := dst.object()
	if err != nil {
		return err
	}
	if o.sha256 == r.PathValue("sha") {
		s.storeFor(r.PathValue("ns")+"/"+r.PathValue("name"), o)
	} else {
		dst.discard()
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(sum.Sum(nil))))
	w.WriteHeader(http.StatusOK)
	return nil
}

// storeFor gives o to the repo of that name, if it still exists.
func (s *Server) storeFor(name string, o *object) {
	s.mu.Lock()
	rp := s.repos[name]
	s.mu.Unlock()
	s.store(rp, o)
}

// putPart takes one part of a multipart upload.
func (s *Server) putPart(w http.ResponseWriter, r *http.Request) error {
	if err := checkPut(r); err != nil {
		return err
	}
	s.mu.Lock()
	ses := s.sessions[r.PathValue("session")]
	s.mu.Unlock()
	n, err := strconv.Atoi(r.PathValue("part"))
	if ses == nil || err != nil || n < 1 || n > ses.nParts() {
		return storageError{http.StatusNotFound, "NoSuchUpload", "The specified multipart upload does not exist."}
	}
	if r.ContentLength > ses.chunk {
		return storageError{http.StatusBadRequest, "EntityTooLarge", "the part is larger than chunk_size"}
	}
	data := s.buffer(int(r.ContentLength))
	if _, err := io.ReadFull(r.Body, data); err != nil {
		return storageError{http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."}
	}
	etag, err := ses.put(n, data)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag)
	w.WriteHeader(http.StatusOK)
	return nil
}
