package publish_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestMainIsReadAgain checks that the last commit counts only if main holds what was sent when it's
// read again. What a person adds next to the weights doesn't matter.
func TestMainIsReadAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile map[string][]byte // that someone else commits right after
		lost      bool
	}{
		"nothing":        {},
		"a note":         {map[string][]byte{"notes.txt": []byte("mine")}, false},
		"a file of ours": {map[string][]byte{"config.json": []byte("theirs")}, true},
		"a deletion":     {map[string][]byte{"config.json": nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := hubtest.Start(t)
			c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: "hf_secret", Clock: hubtest.NewJumpClock(time.Now())}})
			world.Must(t, err)
			push := &publish.Push{Hub: c, Repo: "me/target", Private: new(false)}
			p := &plan.Plan{Config: "config.json", Layout: catalog.Transformers}
			run := publish.NewConversion(p, publish.OriginOf(&model.Model{Origin: &model.Origin{Repo: "org/a"}}), "part", false)
			f, err := publish.OpenFolder(t.Context(), filepath.Join(t.TempDir(), "work"), false, run, 0o666)
			world.Must(t, err)
			defer f.Close(true)
			to, err := push.Open(t.Context(), run, &model.Model{Local: true}, f)
			world.Must(t, err)
			if tt.meanwhile != nil {
				s.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
					x.Next(x.ResponseWriter)
					s.Push("me/target", "main", tt.meanwhile)
				}})
			}
			err = to.Finish(t.Context(), &publish.Result{Summary: "Add a as DF11", Files: []publish.SideFile{
				publish.NewSideFile("README.md", metadata.KindCard, []byte("card")), publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))}})
			if lost := (*publish.LostError)(nil); errors.As(err, &lost) != tt.lost || err != nil && lost == nil {
				t.Errorf("got %v, want it lost: %v", err, tt.lost)
			}
		})
	}
}

// TestReadBackInTheRunsFolder reads back with no folder for temporary files: the other client
// downloads into the work folder. What it downloaded is gone afterwards, also if it couldn't look, and
// what a killed run has left, links too, keeps no other run out.
func TestReadBackInTheRunsFolder(t *testing.T) {
	p := newPublisher(t)
	work := filepath.Join(t.TempDir(), "work")
	left := filepath.Join(work, ".df11-readback", "snapshots")
	for _, looks := range []bool{true, false} {
		world.Must(t, os.MkdirAll(left, 0o700))
		world.Must(t, os.Symlink("x", filepath.Join(left, "config.json")))
		c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: p.URL, HTTPTransport: p, Token: "hf_secret", Clock: hubtest.NewJumpClock(time.Now())}})
		world.Must(t, err)
		run := conversionOf("a")
		f, err := publish.OpenFolder(t.Context(), work, false, run, 0o600)
		world.Must(t, err)
		if _, err := os.Lstat(left); err == nil {
			t.Error("a killed run's downloads are still there")
		}
		push := &publish.Push{Hub: c, Repo: fmt.Sprintf("me/looks-%v", looks), Private: new(false)}
		to, err := push.Open(t.Context(), run, &model.Model{Local: true}, f)
		world.Must(t, err)
		result := &publish.Result{Summary: "Add a as DF11", Files: []publish.SideFile{publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))}}
		world.Must(t, to.Finish(t.Context(), result))
		used := 0
		p.Inject(hubtest.Fault{Method: "GET", Path: "*/resolve/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
			in, _ := os.ReadDir(filepath.Dir(left))
			used += len(in)
			if !looks {
				hubtest.Error(403, "", "no")(x)
				return
			}
			x.Next(x.ResponseWriter)
		}})
		t.Setenv("TMPDIR", filepath.Join(work, "none"))
		err = to.ReadBack(t.Context(), result)
		p.ClearFaults()
		if unread := (*publish.UnreadError)(nil); errors.As(err, &unread) == looks || err != nil && unread == nil {
			t.Errorf("it looks %v: %v", looks, err)
		}
		if _, err := os.Lstat(filepath.Dir(left)); err == nil || used == 0 {
			t.Errorf("it looks %v: downloads are left (%v), or were never there (%d)", looks, err, used)
		}
		world.Must(t, f.Close(true))
	}
}
