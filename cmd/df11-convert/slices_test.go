//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// fleetModels fills a hub with models and returns their list. Every eighth can't be converted, as
// its entry says.
func fleetModels(s *hubtest.Server, n int) string {
	list := "models:\n"
	for i := range n {
		id := fmt.Sprintf("org/m%d", i)
		if i%8 == 7 {
			s.AddRepo(id, map[string][]byte{"pytorch_model.bin": {0}, "config.json": []byte("{}")})
			list += "- {source: " + id + ", expect: not_convertible}\n"
			continue
		}
		s.AddModel(id, hubtest.NewLlama(uint64(i), hubtest.ModelOptions{
			Layers: 1 + i%3, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 20_000,
			Extra: map[string][]byte{"df11.png": []byte("drawing one would take longer than all the rest")},
		}))
		list += "- " + id + "\n"
	}
	return list
}

// targetsOf returns the files of the targets on a hub, with manifests as runs in one go write them.
func targetsOf(s *hubtest.Server, n int) map[string]string {
	sums := map[string]string{}
	for i := range n {
		repo := fmt.Sprintf("tester/m%d-DF11", i)
		for path, f := range s.Files(repo, "main") {
			sums[repo+" "+path] = f.SHA256
			if b, err := s.ReadFile(repo, "main", path); err == nil && f.SHA256 == "" || path == names.Manifest {
				sums[repo+" "+path] = fmt.Sprintf("%x", sha256.Sum256(world.AsStreamed(b)))
			}
		}
	}
	return sums
}

// A killer kills one of the processes that run at some requests, and lets the hub fail at others.
type killer struct {
	mu      sync.Mutex
	running map[*os.Process]bool
	kills   int
}

func (k *killer) kill(x *hubtest.Exchange) {
	k.mu.Lock()
	for p := range k.running {
		_ = p.Kill()
		k.kills++
		break
	}
	k.mu.Unlock()
	x.Next(x.ResponseWriter)
}

func (k *killer) run(c *exec.Cmd) error {
	k.mu.Lock()
	err := c.Start()
	if err == nil {
		k.running[c.Process] = true
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	err = c.Wait()
	k.mu.Lock()
	delete(k.running, c.Process)
	k.mu.Unlock()
	return err
}

// TestSlicesKilledAndFailing checks that machines that share a list publish what one machine would,
// although they are killed and the hub fails. A model takes few requests, and a current model at
// most four. With DF11_DEEP, there are 300 models.
func TestSlicesKilledAndFailing(t *testing.T) {
	t.Parallel()
	n, machines, kills := 10, 3, 4
	if os.Getenv("DF11_DEEP") != "" {
		n, machines, kills = 300, 5, 40
	}
	one := newFleet(t, n)
	if out, err := one.command(t, "list.yaml", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := targetsOf(one.Server, n)
	alone := askedOf(one.Server)
	if t.Logf("one machine: %+v", alone); alone.api > 18*n {
		t.Errorf("%d new models cost %+v", n, alone)
	}

	many := newFleet(t, n)
	k := &killer{running: map[*os.Process]bool{}}
	random := rand.New(rand.NewPCG(uint64(n), 7))
	for range kills {
		many.Inject(hubtest.Fault{Name: "kill", Nth: 10 + random.IntN(20*n), Action: k.kill})
	}
	for _, fault := range []string{"commit-500:3", "batch-500:5", "put-500:4", "cdn-500:9"} {
		f, err := hubtest.ParseFault(fault)
		world.Must(t, err)
		many.Inject(f)
	}
	var wait sync.WaitGroup
	for i := range machines {
		wait.Go(func() {
			slice := fmt.Sprintf("%d/%d", i+1, machines)
			for range kills + 5 {
				err := k.run(many.command(t, "list.yaml", slice))
				exit := (*exec.ExitError)(nil)
				if err == nil {
					return
				}
				if !errors.As(err, &exit) {
					t.Error(err)
					return
				}
			}
			t.Errorf("slice %s never ends well", slice)
		})
	}
	wait.Wait()
	got := targetsOf(many.Server, n)
	t.Logf("%d machines, %d kills: %+v", machines, k.kills, askedOf(many.Server))
	if k.kills == 0 {
		t.Error("no process was killed")
	}
	for file, sum := range want {
		if got[file] != sum {
			t.Errorf("%s: %s, one machine has %s", file, got[file], sum)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, one machine has %d", len(got), len(want))
	}
	many.ClearFaults()
	many.ResetLog()
	if out, err := many.command(t, "list.yaml", "0").CombinedOutput(); err != nil || !strings.Contains(string(out), fmt.Sprintf("%d current, %d not_convertible, ", n-n/8, n/8)) {
		t.Errorf("%v\n%s", err, out)
	}
	if again := askedOf(many.Server); again.api+again.files > 4*n+1 {
		t.Errorf("%d models that are current cost %+v", n, again)
	}
}

// A fleet is a hub with models, and the list of them.
type fleet struct {
	*hubtest.Server
	dir string
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{hubtest.Start(t), t.TempDir()}
	world.Write(t, filepath.Join(f.dir, "list.yaml"), []byte(fleetModels(f.Server, n)))
	f.ResetLog()
	return f
}

// command is a batch of a slice of the list, on a machine of its own.
func (f *fleet) command(t *testing.T, list, slice string) *exec.Cmd {
	args := []string{"batch", filepath.Join(f.dir, list), "--push", "--workers", "1"}
	if slice != "0" {
		args = append(args, "--slice", slice)
	}
	home := filepath.Join(f.dir, strings.ReplaceAll(slice, "/", "-"))
	c := exec.CommandContext(t.Context(), "df11-convert", args...)
	c.Env = append(os.Environ(), "HF_ENDPOINT="+f.URL, "HF_TOKEN=hf_secret", "HOME="+home, "XDG_CACHE_HOME="+home, "NO_PROXY=*")
	return c
}
