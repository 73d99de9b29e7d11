//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// targetsOf returns the SHA-256 of the files of all targets on a hub.
func targetsOf(s *hubtest.Server, n int) map[string]string {
	sums := map[string]string{}
	for i := range n {
		repo := fmt.Sprintf("tester/m%d-DF11", i)
		for path, sum := range sumsOf(s, repo) {
			sums[repo+" "+path] = sum
		}
	}
	return sums
}

// TestSlicesKilledAndFailing checks that machines that share a list publish what one machine would,
// although they are killed and the hub fails. A model takes few requests, and a current model at
// most four. With DF11_DEEP, there are 300 models.
func TestSlicesKilledAndFailing(t *testing.T) {
	t.Parallel()
	n, machines, nKills := 10, 3, 4
	if world.Deep() {
		n, machines, nKills = 300, 5, 40
	}
	one := newFleet(t, n)
	if out, err := one.command(t, "0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := targetsOf(one.Server, n)
	alone := askedOf(one.Server)
	if t.Logf("one machine: %+v", alone); alone.api > 20*n {
		t.Errorf("%d new models cost %+v", n, alone)
	}

	many := newFleet(t, n)
	running := make([]atomic.Pointer[os.Process], machines)
	var kills atomic.Int32
	kill := func(x *hubtest.Exchange) {
		for i := range running {
			p := running[(i+int(kills.Load()))%machines].Load()
			if p != nil && p.Kill() == nil { // it still runs
				kills.Add(1)
				break
			}
		}
		x.Next(x.ResponseWriter)
	}
	random := rand.New(rand.NewPCG(uint64(n), 7))
	for range nKills {
		many.Inject(hubtest.Fault{Name: "kill", Nth: 10 + random.IntN(20*n), Action: kill})
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
			for range nKills + 5 {
				c := many.command(t, slice)
				if err := c.Start(); err != nil {
					t.Error(err)
					return
				}
				running[i].Store(c.Process)
				if c.Wait() == nil {
					return
				}
			}
			t.Errorf("slice %s never ends well", slice)
		})
	}
	wait.Wait()
	got := targetsOf(many.Server, n)
	t.Logf("%d machines, %d kills: %+v", machines, kills.Load(), askedOf(many.Server))
	if kills.Load() == 0 {
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
	if out, err := many.command(t, "0").CombinedOutput(); err != nil || !strings.Contains(string(out), fmt.Sprintf("%d current, %d not_convertible, ", n-n/8, n/8)) {
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

// newFleet makes a fleet of n models. Every eighth can't be converted, as its entry says.
func newFleet(t *testing.T, n int) *fleet {
	f, list := &fleet{hubtest.Start(t), t.TempDir()}, "models:\n"
	for i := range n {
		id := fmt.Sprintf("org/m%d", i)
		if i%8 == 7 {
			f.AddRepo(id, map[string][]byte{"pytorch_model.bin": {0}, "config.json": []byte("{}")})
			list += "- {source: " + id + ", expect: not_convertible}\n"
			continue
		}
		f.AddModel(id, hubtest.NewLlama(uint64(i), hubtest.ModelOptions{
			Layers: 1 + i%3, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 20_000,
			Extra: hubtest.OwnPicture,
		}))
		list += "- " + id + "\n"
	}
	world.Write(t, filepath.Join(f.dir, "list.yaml"), list)
	f.ResetLog()
	return f
}

// command is a batch of a slice of the list, on a machine of its own.
func (f *fleet) command(t *testing.T, slice string) *exec.Cmd {
	args := []string{"batch", filepath.Join(f.dir, "list.yaml"), "--push", "--workers", "1"}
	if slice != "0" {
		args = append(args, "--slice", slice)
	}
	machine := victim{Server: f.Server, home: filepath.Join(f.dir, strings.ReplaceAll(slice, "/", "-"))}
	return machine.command(t, args...)
}
