package hubtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Error codes that the hub sends in X-Error-Code; clients decide on them before they look at the status.
const (
	codeRepoNotFound     = "RepoNotFound"
	codeRevisionNotFound = "RevisionNotFound"
	codeEntryNotFound    = "EntryNotFound"
	codeGatedRepo        = "GatedRepo"
)

// apiError is an answer other than success, as a hub route returns it.
type apiError struct {
	status  int
	code    string // X-Error-Code, or empty
	message string // X-Error-Message and the JSON body
	extra   map[string]any
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s", e.status, e.message) }

func (e *apiError) write(w http.ResponseWriter) {
	if e.code != "" {
		w.Header().Set("X-Error-Code", e.code)
	}
	w.Header().Set("X-Error-Message", e.message)
	body := map[string]any{"error": e.message}
	for k, v := range e.extra {
		body[k] = v
	}
	writeJSON(w, e.status, body)
}

func fail(status int, format string, args ...any) *apiError {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

func errRepoNotFound(anonymous bool) *apiError {
	if anonymous {
		return &apiError{status: http.StatusUnauthorized, code: codeRepoNotFound, message: "Invalid username or password."}
	}
	return &apiError{status: http.StatusNotFound, code: codeRepoNotFound, message: "Repository not found"}
}

func errRevisionNotFound(rev string) *apiError {
	return &apiError{status: http.StatusNotFound, code: codeRevisionNotFound, message: "Invalid rev id: " + rev}
}

func errEntryNotFound(path string) *apiError {
	return &apiError{status: http.StatusNotFound, code: codeEntryNotFound, message: fmt.Sprintf("Entry not found: %q", path)}
}

// handler is a hub route; the error it returns is written as the answer.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h(w, r)
	if err == nil {
		return
	}
	var e *apiError
	if !errors.As(err, &e) {
		e = fail(http.StatusInternalServerError, "%v", err)
	}
	drain(r)
	e.write(w)
}

// drain reads the rest of a body, so that the client sees the refusal and not a broken connection.
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
func readJSON(r *http.Request, v any) error {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 64<<20)).Decode(v); err != nil {
		return fail(http.StatusBadRequest, "invalid JSON body: %v", err)
	}
	return nil
}
