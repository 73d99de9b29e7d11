//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// program is df11-convert with an environment of its own.
type program struct {
	binary, home, endpoint string
	hub                    *hubtest.Server
	source                 []string // the repo, and flags that belong to it
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	c := command(ctx, p.binary, args...)
	c.Dir = p.home // where no folder has the model's name
	c.Env = []string{
		"HF_ENDPOINT=" + p.endpoint, "HF_TOKEN=hf_rehearsal", "HF_HOME=" + filepath.Join(p.home, "hf"),
		"HOME=" + p.home, "TMPDIR=" + p.home, "PATH=" + os.Getenv("PATH"),
	}
	return c
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	return c
}

// plan asks for the prediction.
func (p program) plan(ctx context.Context, o options, more ...string) (v planned, err error) {
	args := append([]string{"plan", "--json", "--quiet", "--disk", o.disk, "--memory", o.memory}, p.source...)
	args = append(append(args, part(o.shard)...), more...)
	out, err := p.command(ctx, args...).Output()
	if err != nil {
		return v, fmt.Errorf("plan: %w", err)
	}
	return v, json.Unmarshal(out, &v)
}

// planned is what the plan verb says that matters here.
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

// step is one run of the program, measured.
type step struct {
	peaks
	name     string
	report   report
	wall     time.Duration
	requests map[string]int // by rate bucket: those of the busiest five minutes; "storage": all
}

// report is what the program says of a run.
type report struct {
	Units   int   `json:"units"`
	Weights int64 `json:"weights"`
	Files   int   `json:"files"`
	Traffic map[string]struct {
		BytesIn  int64         `json:"bytes_in"`
		BytesOut int64         `json:"bytes_out"`
		Requests int64         `json:"requests"`
		Retries  int64         `json:"retries"`
		Waited   time.Duration `json:"waited_ns"`
	} `json:"traffic"`
}

// convert runs a conversion, a part of one or its end, and measures it.
func (p program) convert(ctx context.Context, o options, which []string, repo string) (s step, err error) {
	s.name = "one run"
	if len(which) > 0 {
		s.name = which[len(which)-1]
	}
	work := filepath.Join(p.home, "work")
	args := []string{"--push", "--repo-id", repo, "--work-dir", work, "--disk", o.disk, "--memory", o.memory, "--json", "--quiet"}
	c := p.command(ctx, append(append(args, which...), p.source...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		return s, err
	}
	p.hub.ResetLog()
	start := time.Now()
	if err := c.Start(); err != nil {
		return s, err
	}
	ended := watch(c.Process.Pid, work)
	jsonErr := json.NewDecoder(out).Decode(&s.report)
	err = c.Wait()
	s.wall, s.peaks = time.Since(start), ended()
	s.requests = busiest(p.hub.Requests())
	if err != nil {
		return s, fmt.Errorf("df11-convert: %w", err)
	}
	if jsonErr != nil {
		return s, fmt.Errorf("report: %w", jsonErr)
	}
	return s, nil
}
