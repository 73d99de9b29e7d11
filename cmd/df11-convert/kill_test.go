//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// A victim runs the program, as a process of its own, against a hub in this one.
type victim struct {
	*hubtest.Server
	home string
	args []string // in addition to the usual arguments
	// the read of weights that gets a wrong bit, in the first interrupted run; 0 is none
	wrong  int
	stdout bytes.Buffer
	stderr bytes.Buffer
}

func newVictim(t *testing.T, layers int) *victim {
	t.Helper()
	v := &victim{Server: hubtest.Start(t), home: t.TempDir()}
	v.AddModel("org/model", killModel(layers))
	v.ResetLog()
	return v
}

// command returns a call of the program that uses the hub.
func (v *victim) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "df11-convert", args...)
	c.Env = append(os.Environ(), "HF_ENDPOINT="+v.URL, "HF_TOKEN=hf_secret", "HOME="+v.home, "XDG_CACHE_HOME="+v.home, "NO_PROXY=*")
	return c
}

// run starts the program, calls hit once with the process at the k-th request (0: never), and waits
// for the end.
func (v *victim) run(t *testing.T, k int, hit func(*os.Process)) error {
	t.Helper()
	c := v.command(t, append([]string{"org/model", "--push", "--verbose", "--workers", "2"}, v.args...)...)
	v.stdout.Reset()
	v.stderr.Reset()
	c.Stdout, c.Stderr = &v.stdout, &v.stderr
	started := make(chan struct{})
	v.ClearFaults()
	if k > 0 {
		if v.wrong > 0 {
			v.Inject(hubtest.Fault{Name: "corrupt", Nth: v.wrong})
			v.wrong = 0
		}
		v.Inject(hubtest.Fault{Nth: k, Action: func(x *hubtest.Exchange) {
			<-started
			hit(c.Process)
			x.Next(x.ResponseWriter)
		}})
	}
	world.Must(t, c.Start())
	close(started)
	err := c.Wait()
	if strings.Contains(v.stderr.String(), "hf_secret") {
		t.Error("the token is in the log")
	}
	return err
}

// target returns the SHA-256 of the files of the target's main.
func (v *victim) target() map[string]string { return sumsOf(v.Server, "tester/model-DF11") }

// sumsOf returns the SHA-256 of the files of a repo's main, with the manifest as a run in one go
// writes it.
func sumsOf(s *hubtest.Server, repo string) map[string]string {
	sums := map[string]string{}
	for path, f := range s.Files(repo, "main") {
		sums[path] = f.SHA256
		if b, err := s.ReadFile(repo, "main", path); err == nil && f.SHA256 == "" || path == names.Manifest {
			sums[path] = world.Sum(world.AsStreamed(b))
		}
	}
	return sums
}

// finishedOutput matches the file that a run says it has made.
var finishedOutput = regexp.MustCompile(`msg="output finished" file=(\S+)`)

// TestKill kills the program at random points. That leaves no finished repo. The next run, with the
// same disk or a new one, ends with the same bytes, and doesn't convert what the target already
// held. In half of the cases spools are on disk, one read has a wrong bit, and the program is asked
// to end before its second run is killed. So it keeps what it has, and must make outputs with the
// wrong bit again.
func TestKill(t *testing.T) {
	t.Parallel()
	base := newVictim(t, 60)
	if err := base.run(t, 0, nil); err != nil {
		t.Fatalf("%v\n%s", err, &base.stderr)
	}
	want, nRequests, nReads := base.target(), len(base.Requests()), base.Count("GET", "/repos/*")
	for _, seed := range world.Seeds(t, 5, 50) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, 60)
			rnd := rand.New(rand.NewPCG(seed, 0))
			onDisk := rnd.IntN(2) == 0
			if onDisk {
				v.args, v.wrong = []string{"--memory", "64MiB"}, 1+rnd.IntN(nReads)
				v.stopped(t, 1+rnd.IntN(nRequests), 0, syscall.SIGTERM)
			}
			v.stopped(t, 1+rnd.IntN(nRequests), time.Duration(rnd.IntN(20))*time.Millisecond, syscall.SIGKILL)
			committed := v.target()
			if rnd.IntN(2) == 0 {
				v.home = t.TempDir() // another machine
			}
			if err := v.run(t, 0, nil); err != nil {
				t.Fatalf("run again: %v\n%s", err, &v.stderr)
			}
			for _, m := range finishedOutput.FindAllStringSubmatch(v.stderr.String(), -1) {
				if _, ok := committed[m[1]]; ok && !onDisk {
					t.Errorf("%s was converted twice", m[1])
				}
			}
			if !maps.Equal(v.target(), want) {
				t.Errorf("the repo differs from an undisturbed one: %d files, want %d", len(v.target()), len(want))
			}
		})
	}
}

// TestKillOfParameters kills conversions whose units are parameters of modules and slices of them,
// and then refreshes of their results, after a bit of an expert was changed. Run again, each ends
// with the bytes of an undisturbed one.
func TestKillOfParameters(t *testing.T) {
	t.Parallel()
	dict := filepath.Join(t.TempDir(), "dict.json")
	world.Must(t, os.WriteFile(dict, []byte(slicesDict), 0o600))
	start := func(t *testing.T) *victim {
		v := &victim{Server: hubtest.Start(t), home: t.TempDir(), args: []string{"--pattern-dict", dict}}
		files := expertFiles(12)
		files["README.md"] = []byte("---\nlicense: mit\n---\n")
		v.AddRepo("org/model", files)
		v.ResetLog()
		return v
	}
	tune := func(v *victim) {
		b := bytes.Clone(expertFiles(12)["model.safetensors"])
		b[len(b)*2/3] ^= 1
		v.Push("org/model", "main", map[string][]byte{"model.safetensors": b})
		v.ResetLog()
	}
	must := func(t *testing.T, v *victim) map[string]string {
		t.Helper()
		if err := v.run(t, 0, nil); err != nil {
			t.Fatalf("%v\n%s", err, &v.stderr)
		}
		sums := v.target()
		delete(sums, names.Card) // card and manifest of a refresh say what an earlier run has checked
		delete(sums, names.Manifest)
		return sums
	}
	base := start(t)
	want, first := must(t, base), len(base.Requests())
	tune(base)
	tuned, second := must(t, base), len(base.Requests())
	if maps.Equal(want, tuned) || len(want) != 12*4+4 { // three slices, and down_proj
		t.Fatalf("%d files", len(want))
	}
	for _, seed := range world.Seeds(t, 3, 30) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			v, rnd := start(t), rand.New(rand.NewPCG(seed, 1))
			v.stopped(t, 1+rnd.IntN(first), time.Duration(rnd.IntN(20))*time.Millisecond, syscall.SIGKILL)
			if got := must(t, v); !maps.Equal(got, want) {
				t.Errorf("the repo differs from an undisturbed one: %d files, want %d", len(got), len(want))
			}
			tune(v)
			v.stopped(t, 1+rnd.IntN(second), 0, syscall.SIGKILL)
			if rnd.IntN(2) == 0 {
				v.home = t.TempDir() // another machine
			}
			if got := must(t, v); !maps.Equal(got, tuned) {
				t.Errorf("the refreshed repo differs from an undisturbed one: %d files, want %d", len(got), len(tuned))
			}
		})
	}
}

// whole checks that a target that looks finished has every file of its manifest. A small result
// comes with one commit, and then a kill can't harm it.
func (v *victim) whole(t *testing.T) {
	t.Helper()
	b, err := v.ReadFile("tester/model-DF11", "main", names.Manifest)
	world.Must(t, err)
	m, err := metadata.ParseManifest(b, 0)
	world.Must(t, err)
	files := v.target()
	for _, o := range m.Outputs {
		if files[o.Path] != o.SHA256 {
			t.Errorf("the repo looks finished after a kill in the middle, without %s", o.Path)
		}
	}
}

// stopped runs the program and sends it a signal some time after the k-th request.
func (v *victim) stopped(t *testing.T, k int, later time.Duration, sig syscall.Signal) {
	t.Helper()
	err := v.run(t, k, func(p *os.Process) {
		time.Sleep(later)
		if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	_, finished := v.target()["config.json"]
	if err != nil && finished {
		v.whole(t)
	}
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || sig == syscall.SIGKILL && exit.Sys().(syscall.WaitStatus).Signal() != sig ||
		sig != syscall.SIGKILL && exit.ExitCode() != exitInterrupted) {
		t.Errorf("ended by itself: %v\n%s", err, &v.stderr)
	}
	t.Logf("%v at %v after request %d: %d files in the repo, finished %v", sig, later, k, len(v.target()), finished)
}

// TestWorkGoesOnceTheTargetIsUpToDate checks that a machine doesn't keep what a stopped run left
// there once another machine has published the result: the next run, which has nothing to do,
// removes it.
func TestWorkGoesOnceTheTargetIsUpToDate(t *testing.T) {
	t.Parallel()
	v := newVictim(t, 6)
	here := v.home
	v.stopped(t, 30, 0, syscall.SIGKILL)
	left := func() []string {
		files, err := filepath.Glob(filepath.Join(here, "df11-convert", "*", ".df11-convert", "*"))
		world.Must(t, err)
		return files
	}
	if len(left()) < 2 {
		t.Fatalf("a kill leaves %v", left())
	}
	v.home = t.TempDir()
	world.Must(t, v.run(t, 0, nil))
	v.home = here
	world.Must(t, v.run(t, 0, nil))
	if !strings.Contains(v.stdout.String(), "up to date") {
		t.Errorf("the last run has done something:\n%s%s", &v.stdout, &v.stderr)
	}
	if folders, err := filepath.Glob(filepath.Join(here, "df11-convert", "*")); err != nil || len(folders) > 0 {
		t.Errorf("left behind: %v with %v, %v", folders, left(), err)
	}
}

// TestOtherWorkIsNamed checks that a run names what a killed run left for the same target, once the
// source has other weights, and leaves it there.
func TestOtherWorkIsNamed(t *testing.T) {
	t.Parallel()
	v := newVictim(t, 6)
	v.stopped(t, 30, 0, syscall.SIGKILL)
	left, err := filepath.Glob(filepath.Join(v.home, "df11-convert", "*"))
	if world.Must(t, err); len(left) != 1 {
		t.Fatalf("a kill leaves %v", left)
	}
	v.AddModel("org/model", killModel(7))
	for range 2 { // a conversion, and a run that finds it
		world.Must(t, v.run(t, 0, nil))
		if text := v.stderr.String(); !strings.Contains(text, "earlier runs for tester/model-DF11, with other weights or options, left ") ||
			!strings.Contains(text, filepath.Base(left[0])) {
			t.Errorf("what is in %s isn't named:\n%s", left[0], text)
		}
	}
	world.Must(t, os.RemoveAll(left[0]))
	if world.Must(t, v.run(t, 0, nil)); strings.Contains(v.stderr.String(), "earlier runs") {
		t.Errorf("nothing is left:\n%s", &v.stderr)
	}
}

// TestSignals checks that SIGINT, SIGTERM, and SIGHUP end the program with 130 and print the
// command that continues, and that this command does the same.
func TestSignals(t *testing.T) {
	t.Parallel()
	// a program that inherits an ignored SIGHUP, as from nohup, goes on ignoring it
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		v := newVictim(t, 60)
		v.stopped(t, 30, 0, sig)
		if !strings.Contains(v.stderr.String(), "resume with: df11-convert org/model --push --verbose --workers 2") || v.stdout.Len() > 0 {
			t.Errorf("stderr ends with no command that goes on, or stdout is not empty:\n%s", &v.stderr)
		}
		if !regexp.MustCompile(`hint: (\d+ of \d+ weight files saved(, at least \d+ of them published)?|\d+ weight files published, but maybe not the files next to them|this run has saved nothing); resume`).MatchString(v.stderr.String()) {
			t.Errorf("stderr doesn't say how much is saved:\n%s", &v.stderr)
		}
		if _, published := v.target()["config.json"]; published {
			v.whole(t) // on a busy machine, the last commit was on its way
		}
		world.Must(t, v.run(t, 0, nil))
		left, err := filepath.Glob(filepath.Join(v.home, "df11-convert", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
