package publish_test

import (
	"crypto/rand"
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
// downloads into the work folder. What it downloaded is gone afterwards, also if it couldn't look,
// and what a killed run has left, links too, keeps no other run out.
func TestReadBackInTheRunsFolder(t *testing.T) {
	p := newPublisher(t)
	work := filepath.Join(t.TempDir(), "work")
	made := filepath.Join(work, ".df11-readback-"+rand.Text())
	left := filepath.Join(made, "snapshots")
	for _, looks := range []bool{true, false} {
		world.Must(t, os.MkdirAll(left, 0o700))
		world.Must(t, os.Symlink("x", filepath.Join(left, "config.json")))
		world.Write(t, filepath.Join(work, ".df11-convert", "readback"), filepath.Base(made))
		c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: p.URL, HTTPTransport: p, Token: "hf_secret", Clock: hubtest.NewJumpClock(time.Now())}})
		world.Must(t, err)
		run := conversionOf("a")
		f, err := publish.OpenFolder(t.Context(), work, false, run, 0o600)
		world.Must(t, err)
		if _, err := os.Lstat(made); err == nil {
			t.Error("a killed run's downloads are still there")
		}
		push := &publish.Push{Hub: c, Repo: fmt.Sprintf("me/looks-%v", looks), Private: new(false)}
		to, err := push.Open(t.Context(), run, &model.Model{Local: true}, f)
		world.Must(t, err)
		result := &publish.Result{Summary: "Add a as DF11", Files: []publish.SideFile{publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))}}
		world.Must(t, to.Finish(t.Context(), result))
		used := 0
		p.Inject(hubtest.Fault{Method: "GET", Path: "*/resolve/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
			used += len(readBacks(t, work))
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
		if left := readBacks(t, work); len(left) > 0 || used == 0 {
			t.Errorf("it looks %v: downloads are left (%v), or were never there (%d)", looks, left, used)
		}
		world.Must(t, f.Close(true))
		if left, _ := os.ReadDir(work); len(left) > 0 {
			t.Errorf("the work folder has %v", left)
		}
	}
}

// readBacks lists what is in the folders for another client.
func readBacks(t *testing.T, work string) []string {
	t.Helper()
	in, err := filepath.Glob(filepath.Join(work, ".df11-readback-*", "*"))
	world.Must(t, err)
	return in
}

// TestOnlyTheNotedReadBackIsRemoved checks for every name that a folder may have, and every note
// that someone may have forged, that a run removes a folder only if it has a name of ours and the
// note says so, never through a link, and that a refused run removes nothing.
func TestOnlyTheNotedReadBackIsRemoved(t *testing.T) {
	ours := ".df11-readback-" + rand.Text()
	all := []string{ours, ours + "X", ".df11-readback", ".df11-readback-", ".df11-readback-MINE", "mine", ".git", "mine/" + ours, ours[:len(ours)-1]}
	notes := append([]string{"", ".", "..", "../outside", "/", ours + "/", "./" + ours, ours + "\n", "mine/..", "link"}, all...)
	for _, refused := range []bool{false, true} {
		for _, stays := range []bool{false, true} {
			for _, note := range notes {
				above := t.TempDir()
				root := filepath.Join(above, "out")
				for _, name := range append(all, "../outside") {
					world.Write(t, filepath.Join(root, name, "kept"), "mine")
				}
				world.Must(t, os.Symlink("mine", filepath.Join(root, "link")))
				world.Write(t, filepath.Join(root, ".df11-convert", "readback"), note)
				if refused {
					world.Write(t, filepath.Join(root, "config.json"), "theirs")
				}
				f, err := publish.OpenFolder(t.Context(), root, stays, conversionOf("a"), 0o600)
				if wasRefused := err != nil; wasRefused != (refused && stays) {
					t.Fatalf("refused: %v", err)
				}
				if err == nil {
					world.Must(t, f.Close(true))
				}
				for _, name := range append(all, "../outside") {
					_, err := os.Lstat(filepath.Join(root, name, "kept"))
					if gone := err != nil; gone != (note == ours && name == ours && !(refused && stays)) {
						t.Errorf("note %q, refused %v: %s is gone: %v", note, refused, name, gone)
					}
				}
			}
		}
	}
	root := t.TempDir()
	world.Write(t, filepath.Join(root, "mine", "kept"), "mine")
	world.Must(t, os.Symlink("mine", filepath.Join(root, ours)))
	if _, err := os.Lstat(filepath.Join(root, ours)); err != nil {
		t.Skip("this system makes no links") // Wine 8 says that it does
	}
	world.Write(t, filepath.Join(root, ".df11-convert", "readback"), ours)
	f, err := publish.OpenFolder(t.Context(), root, true, conversionOf("a"), 0o600)
	world.Must(t, err)
	world.Must(t, f.Close(true))
	for _, name := range []string{"mine/kept", ours} {
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}
