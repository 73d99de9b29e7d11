package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// inMemory makes a Hub without a network, for runs in virtual time.
var inMemory = hubtest.InMemory("https://hub.test", "https://storage.test")

// A night is a batch in this process, on a Hub in memory: in a bubble of package synctest, hours of
// waiting take no time.
type night struct {
	hub  hub.Options
	list string
	work string
	disk int64
}

// newNight returns the night of a list on a Hub.
func newNight(t *testing.T, s *hubtest.Server, list string) *night {
	t.Helper()
	return &night{hub: hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: "hf_any",
		TokenSource: "HF_TOKEN", HTTPTransport: s}}, list: list, work: t.TempDir()}
}

// run runs batch --push, and returns its report, what it printed, and what ended it.
func (n *night) run(ctx context.Context, t *testing.T) (b batchReport, diag string, err error) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		world.Must(t, err)
		defer f.Close()
		files[i] = f
	}
	u, opt := newUI(files[0], files[1]), n.hub
	u.json, u.command = true, "batch"
	f := &convertFlags{sourceFlags: sourceFlags{instead: &opt}, target: targetFlags{push: true},
		gpu: gpuFlags{mode: "off"}, workDir: n.work, disk: sizeFlag(n.disk)}
	err = runBatch(ctx, u, f, n.list)
	b, _ = u.found.(batchReport)
	return b, string(world.Read(t, files[1].Name())), err
}
