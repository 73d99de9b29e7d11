//go:build unix

package pipeline_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/pipeline"
)

// What isn't a file of a model has a kind of its own.
func TestKindsOfOddFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, verify := pipeline.Verify(t.Context(), pipe, pipeline.VerifyOptions{})
	_, plan := pipeline.Plan(t.Context(), t.TempDir(), pipeline.PlanOptions{Options: pipeline.Options{
		Recipe: pipeline.Recipe{PatternDict: "/dev/zero"}}})
	for _, err := range []error{verify, plan} {
		if !errors.Is(err, pipeline.ErrFile) {
			t.Error(err)
		}
	}
}
