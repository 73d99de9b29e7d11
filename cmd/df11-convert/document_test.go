package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestNext checks which step a front end can offer after an error.
func TestNext(t *testing.T) {
	asked := func(cause error, token string) error {
		return fmt.Errorf("plan: %w", &hub.Error{Err: cause, TokenSource: token, Repo: "a/b"})
	}
	for _, x := range []struct {
		err  error
		step string
	}{
		{asked(hub.ErrGated, ""), "sign_in"},
		{asked(hub.ErrGated, "HF_TOKEN"), "accept_terms"},
		{asked(hub.ErrNotFound, ""), "sign_in"}, // it may be private
		{asked(hub.ErrNotFound, "HF_TOKEN"), ""},
		{asked(hub.ErrUnauthorized, "HF_TOKEN"), "sign_in"},
		{asked(hub.ErrForbidden, "HF_TOKEN"), ""},
		{&hub.Error{Status: 503}, "retry"},
		{&hub.Error{Err: hub.ErrRateLimited, Attempts: 2}, "retry"},
		{&hub.Error{Err: hub.ErrCorrupt}, ""},
		{&plan.RefusedError{Next: "check_instead"}, "check_instead"},
		{pipeline.ErrNoOriginal, ""},
	} {
		if f := failureOf(x.err); f.Next != x.step {
			t.Errorf("%v: %q", x.err, f.Next)
		}
	}
}

// TestNamesTurnNothing checks that marks of text direction in names reach no reader of the
// document.
func TestNamesTurnNothing(t *testing.T) {
	f := failureOf(&plan.RefusedError{Detail: "a.\u202egnp is F16", Hint: hint.IndexOrSingle.With("file", "\u2066b")})
	if f.Message != `a.\u202egnp is F16` || !strings.HasSuffix(f.Hint, ` \u2066b`) {
		t.Errorf("%q, %q", f.Message, f.Hint)
	}
}
