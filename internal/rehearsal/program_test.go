//go:build linux

package rehearsal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// program is df11-convert with an environment of its own.
type program struct {
	options
	binary, home string
	hub          *hubtest.Server
	source       []string // the repo, and flags that belong to it
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	c := command(ctx, p.binary, append(args, p.source...)...)
	c.Dir = p.home // where no folder has the model's name
	c.Env = []string{
		"HF_ENDPOINT=" + p.hub.URL, "HF_TOKEN=hf_rehearsal", "HF_HOME=" + filepath.Join(p.home, "hf"),
		"HOME=" + p.home, "TMPDIR=" + p.home, "PATH=" + os.Getenv("PATH"),
	}
	return c
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	return c
}

// part is the flag for a part, or none.
func (p program) part() []string {
	if p.shard == "" {
		return nil
	}
	return []string{"--shard", p.shard}
}

// planned is the part of the plan verb's answer that matters here.
type planned struct {
	Units    []struct{} `json:"units"`
	Estimate struct {
		Needs struct {
			DiskPush       int64 `json:"disk_push_bytes"`
			Memory         int64 `json:"memory_bytes"`
			FinishDisk     int64 `json:"finish_disk_bytes"`
			FinishDownload int64 `json:"finish_download_bytes"`
		} `json:"needs"`
	} `json:"estimate"`
}

// plan asks for the prediction; more flags override the budgets.
func (p program) plan(ctx context.Context, more ...string) (v planned, err error) {
	args := append([]string{"plan", "--json", "--quiet", "--disk", p.disk, "--memory", p.memory}, p.part()...)
	out, err := p.command(ctx, append(args, more...)...).Output()
	if err != nil {
		return v, fmt.Errorf("plan: %w", err)
	}
	return v, json.Unmarshal(out, &v)
}

// conversion is a run that publishes to the target; which names a part, or the finish of all.
func (p program) conversion(ctx context.Context, which ...string) *exec.Cmd {
	args := []string{"--push", "--repo-id", target, "--work-dir", p.work(), "--disk", p.disk, "--memory", p.memory, "--json", "--quiet"}
	return p.command(ctx, append(args, which...)...)
}

func (p program) work() string { return filepath.Join(p.home, "work") }

// step is one run of the program, measured.
type step struct {
	peaks
	name   string
	report struct {
		Units   int   `json:"units"`
		Weights int64 `json:"weights"`
		Traffic map[string]struct {
			BytesIn  int64   `json:"bytes_in"`
			BytesOut int64   `json:"bytes_out"`
			Waited   float64 `json:"waited_seconds"`
		} `json:"traffic"`
	}
	wall     time.Duration
	requests map[string]int // by rate bucket, in the busiest five minutes; "storage": all
}

// convert runs a conversion, a part of one or the finish, and measures it.
func (p program) convert(ctx context.Context, which ...string) (s step, err error) {
	s.name = "one run"
	if len(which) > 0 {
		s.name = which[len(which)-1]
	}
	c := p.conversion(ctx, which...)
	out, err := c.StdoutPipe()
	if err != nil {
		return s, err
	}
	p.hub.ResetLog()
	start := time.Now()
	if err := c.Start(); err != nil {
		return s, err
	}
	ended := watch(c.Process.Pid, p.work())
	jsonErr := json.NewDecoder(out).Decode(&s.report)
	err = c.Wait()
	s.wall, s.peaks = time.Since(start), ended()
	s.requests = busiest(p.hub.Requests())
	if err = cmp.Or(err, jsonErr); err != nil {
		return s, fmt.Errorf("df11-convert: %w", err)
	}
	return s, nil
}

// killed starts a conversion, kills it once the Hub has sent the bytes of -kill, and returns how many were sent.
func (p program) killed(ctx context.Context) (sent int64, err error) {
	c := p.conversion(ctx, p.part()...)
	p.hub.ResetLog()
	if err := c.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for p.sent() < p.kill {
		select {
		case err := <-ended:
			return p.sent(), errors.Join(errors.New("the program ended before it was killed"), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := c.Process.Kill(); err != nil {
		return 0, err
	}
	err = <-ended
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return 0, fmt.Errorf("after the kill: %w", err)
	}
	return p.sent(), nil
}

// leave takes away what a run has left on its machine.
func (p program) leave() error {
	return errors.Join(os.RemoveAll(p.work()), os.RemoveAll(filepath.Join(p.home, "hf")))
}

// sent counts the bytes that the storage host has sent.
func (p program) sent() (n int64) {
	for _, q := range p.hub.Requests() {
		if q.Host == hubtest.HostCDN && q.Method == "GET" {
			n += q.Sent
		}
	}
	return n
}
