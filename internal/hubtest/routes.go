package hubtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// hubRoutes dispatches on the first path segment, because the routes below /api/ and the routes
// below /{namespace}/ would overlap in one mux.
func (s *Server) hubRoutes() http.Handler {
	api, site := mux(s.apiRoutes()), mux(s.siteRoutes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if location, ok := s.renamed(r.URL); ok {
			w.Header().Set("Location", location)
			w.WriteHeader(ruleRenamed.Status)
			return
		}
		switch changes := !slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method); {
		case s.cfg.ReadOnly && changes:
			fail(http.StatusMethodNotAllowed, "Method Not Allowed").answer(w, r)
			return
		case s.cfg.NoSlashes && strings.Contains(r.URL.EscapedPath(), "%2F"):
			fail(http.StatusNotFound, "Not Found").answer(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
			return
		}
		site.ServeHTTP(w, r)
	})
}

func mux(routes map[string]handler) *http.ServeMux {
	m := http.NewServeMux()
	for pattern, h := range routes {
		m.Handle(pattern, h)
	}
	return m
}

func noPage(http.ResponseWriter, *http.Request) error {
	return fail(http.StatusNotFound, "Sorry, we can't find the page you are looking for.")
}

// apiRoutes are the routes below /api/, each with the access that it needs. Only here their
// addresses are written.
func (s *Server) apiRoutes() map[string]handler {
	const model = "/api/models/{ns}/{name}"
	return map[string]handler{
		"/":                              noPage,
		"GET /api/whoami-v2":             s.route(accessLogin, whoami),
		"GET /api/models":                s.route(accessNone, listModels),
		"GET /api/datasets/{dataset...}": s.route(accessNone, datasetInfo),
		"POST /api/validate-yaml": routeBody(s, accessNone,
			validateYAML),
		"POST /api/repos/create": routeBody(s, accessLogin,
			createRepo),
		"DELETE /api/repos/delete":         routeBody(s, accessLogin, deleteRepo),
		"PUT " + model + "/settings":       routeBody(s, accessWrite, changeSettings),
		"POST /api/complete_multipart":     s.completeMultipart,
		"GET " + model:                     s.route(accessInfo, modelInfo),
		"GET " + model + "/revision/{rev}": s.route(accessInfo, modelInfo),
		"GET " + model + "/tree/{rev}":     s.route(accessInfo, tree),
		// as olah asks
		"GET " + model + "/tree/{rev}/{$}": s.route(accessInfo, tree),
		"POST " + model + "/paths-info/{rev}": routeRead(s, accessInfo,
			readPaths, pathsInfo),
		"GET " + model + "/refs":             s.route(accessInfo, refs),
		"GET " + model + "/auth-check":       s.route(accessFiles, success),
		"GET " + model + "/auth-check/write": s.route(accessWrite, success),
		"POST " + model + "/branch/{branch}": routeBody(s, accessWrite,
			createBranch),
		"DELETE " + model + "/branch/{branch}": s.route(accessWrite,
			deleteBranch),
		"POST " + model + "/preupload/{rev}": routeBody(s, accessWrite,
			preupload),
		"POST " + model + "/commit/{rev}": routeRead(s, accessWrite,
			s.readCommit, apply),
		"POST " + model + "/lfs-files/duplicate": routeBody(s, accessFiles,
			duplicate),
		"GET /api/resolve-cache/models/{ns}/{name}/{rev}/{path...}": s.route(accessFiles, resolve),
	}
}

func (s *Server) siteRoutes() map[string]handler {
	return map[string]handler{
		"/":                           noPage,
		"POST /oauth/token":           s.oauthToken,
		"GET /_github/{owner}/{name}": s.giveIdentity,
		"GET /{ns}/{name}/resolve/{rev}/{path...}": s.route(accessFiles, resolve),
		"POST /{ns}/{git}/info/lfs/objects/batch":  routeBody(s, accessWrite, batchObjects),
		"POST /{ns}/{git}/info/lfs/objects/verify": routeBody(s, accessWrite, lfsVerify),
		"PUT /{ns}/{git}/lfs/objects/{sha}":        s.route(accessWrite, sendOn),
	}
}

// call is one request of a hub route.
type call struct {
	*Server
	w    http.ResponseWriter
	r    *http.Request
	user *User // the sender, or nil
	repo *repo // of a route below a repo
}

// A route runs with the lock of the store and returns its answer, which is written after the lock
// is free: nil as an empty 200, an http.Handler by itself, anything else as JSON.
type route func(c *call) (answer any, err error)

// route makes a handler of a route that its callers need access for.
func (s *Server) route(want access, h route) handler {
	noBody := func(*http.Request) (any, error) { return nil, nil }
	return routeRead(s, want, noBody, func(c *call, _ any) (any, error) { return h(c) })
}

// routeBody is route for one with a JSON body, whose members are matched to the fields of Q in any
// case.
func routeBody[Q any](s *Server, want access, h func(c *call, q Q) (any, error)) handler {
	return routeRead(s, want, readJSON[Q], h)
}

// routeRead is route for a body that's read in its own way, before the store is locked, so that a
// slow client makes no one wait.
func routeRead[Q any](s *Server, want access, read func(*http.Request) (Q, error),
	h func(c *call, q Q) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.open(w, r, want)
		if err != nil {
			return err
		}
		q, err := read(r)
		if err != nil {
			return err
		}
		answer, err := func() (any, error) {
			s.store.mu.Lock()
			defer s.store.mu.Unlock()
			return h(c, q)
		}()
		if err != nil {
			return err
		}
		switch answer := answer.(type) {
		case nil:
			w.WriteHeader(http.StatusOK)
		case http.Handler:
			answer.ServeHTTP(w, r)
		default:
			writeJSON(w, http.StatusOK, answer)
		}
		return nil
	}
}

// commit finds the commit of the revision in the path; without one, the head of main.
func (c *call) commit() (*Commit, error) {
	rev := cmp.Or(c.r.PathValue("rev"), "main")
	if found := c.repo.resolve(rev); found != nil {
		return found, nil
	}
	return nil, errRevisionNotFound(rev)
}

// success answers a route that does nothing but check the access.
func success(*call) (any, error) { return map[string]any{"success": true}, nil }

// Error codes that the hub sends in X-Error-Code; clients decide on them before they look at the
// status.
const (
	codeRepoNotFound     = "RepoNotFound"
	codeRevisionNotFound = "RevisionNotFound"
	codeEntryNotFound    = "EntryNotFound"
	codeGatedRepo        = "GatedRepo"
)

// refusal is an answer other than success, as a route of either host returns it.
type refusal struct {
	status  int
	code    string // X-Error-Code, or empty; the storage host's own word
	message string // X-Error-Message and the JSON body
	url     string // in the JSON body, if it is not empty
	xml     bool   // of the storage host
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s", e.status, e.message) }

// answer reads the rest of the request's body first, so that the client sees the refusal and not a
// broken connection.
func (e *refusal) answer(w http.ResponseWriter, r *http.Request) {
	drain(r)
	if e.xml {
		body := "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + e.code +
			"</Code><Message>" + e.message + "</Message><RequestId>HUBTEST</RequestId></Error>"
		writeBody(w, e.status, "application/xml", []byte(body))
		return
	}
	if e.code != "" {
		w.Header().Set("X-Error-Code", e.code)
	}
	body := map[string]any{"error": e.message}
	if ways, _ := r.Context().Value(waysKey{}).(Ways); ways.Details {
		if e.message == quotaText {
			e = fail(http.StatusRequestEntityTooLarge, "%s", quotaText)
		}
		body = map[string]any{"detail": body}
	} else {
		w.Header().Set("X-Error-Message", e.message)
	}
	if e.url != "" {
		body["url"] = e.url
	}
	writeJSON(w, e.status, body)
}

func failCode(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func fail(status int, format string, args ...any) *refusal {
	return failCode(status, "", format, args...)
}

func errRepoNotFound(anonymous bool) *refusal {
	if anonymous {
		return failCode(http.StatusUnauthorized, codeRepoNotFound, "Invalid username or password.")
	}
	return failCode(http.StatusNotFound, codeRepoNotFound, "Repository not found")
}

func errRevisionNotFound(rev string) *refusal {
	return failCode(http.StatusNotFound, codeRevisionNotFound, "Invalid rev id: %s", rev)
}

func errEntryNotFound(path string) *refusal {
	return failCode(http.StatusNotFound, codeEntryNotFound, "Entry not found: %q", path)
}

// handler is a route of the hub or of the storage host; the error it returns is written as the
// answer.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h(w, r)
	if err == nil {
		return
	}
	why, ok := errors.AsType[*refusal](err)
	if !ok {
		why = fail(http.StatusInternalServerError, "%v", err)
	}
	why.answer(w, r)
}

func drain(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("hubtest: internal error: " + err.Error())
	}
	writeBody(w, status, "application/json; charset=utf-8", data)
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// readJSON decodes a request body of at most 64 MiB.
func readJSON[Q any](r *http.Request) (q Q, err error) {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 64<<20)).Decode(&q); err != nil {
		return q, fail(http.StatusBadRequest, "invalid JSON body: %v", err)
	}
	return q, nil
}
