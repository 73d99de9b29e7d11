package hub

import (
	"errors"
	"fmt"
	"testing"
)

// TestError checks that an error keeps its text and its causes when a caller wraps it, and that a
// caller can make one.
func TestError(t *testing.T) {
	failure := &Error{Op: "read a of b/c", Side: "source", Method: "GET", URL: "https://h/a", Status: 403, Code: "GatedRepo", Message: "no", RequestID: "r", TokenSource: "HF_TOKEN", Attempts: 2, Repo: "b/c", Endpoint: "https://h", Err: ErrGated}
	err := fmt.Errorf("outer: %w", failure)
	e, ok := errors.AsType[*Error](err)
	if !ok || *e != *failure || !errors.Is(err, ErrGated) || Hint(err) != Hint(failure) || Hint(err) == "" {
		t.Fatalf("%v", err)
	}
	text := "source: read a of b/c: " + ErrGated.Error() + ": 403 Forbidden: no (GET https://h/a, 2 attempts, request id r)"
	if e.Error() != text {
		t.Errorf("%v, want %s", e, text)
	}
	if want := "b/c: " + ErrGated.Error(); e.Brief() != want || Brief(err) != want || !e.GaveUp() || e.Temporary() {
		t.Errorf("%q, %q, %v, %v", e.Brief(), Brief(err), e.GaveUp(), e.Temporary())
	}
	if wrapped := e.Unwrap(); wrapped.Error() != text || !errors.Is(wrapped, ErrGated) {
		t.Errorf("%v", wrapped)
	}
	if other := errors.New("other"); Brief(other) != "other" || Hint(other) != "" || Brief(nil) != "" || Hint(nil) != "" {
		t.Error("errors of no request change")
	}
}
