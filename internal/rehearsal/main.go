//go:build linux

// Command rehearsal converts a model of the shapes of Llama-3.1-405B, from a Hub inside this process to the same Hub, by
// df11-convert as a program of its own, and measures the memory and the disk that it takes. It judges no result bytes:
// weights are made when they are asked for, and what is uploaded is hashed and dropped.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// The repos of the rehearsal.
const (
	source = "rehearsal/Llama-3.1-405B"
	target = "rehearsal/Llama-3.1-405B-DF11"
)

type options struct {
	layers        int
	shard, binary string
	down, up      int64
	disk, memory  string
	diskLimit     int64
	rssLimit      int64
	tolerance     float64
	scratch       string
}

func main() {
	var o options
	flag.IntVar(&o.layers, "layers", 126, "layers of the model, each of full size: 6.4 GB")
	flag.StringVar(&o.shard, "shard", "", "convert only this part, i/n; source hashes are then not computed")
	flag.StringVar(&o.binary, "df11-convert", "", "the program (default: it is built)")
	flag.Int64Var(&o.down, "down", 0, "speed of the download line in bytes per second, 0 for no limit")
	flag.Int64Var(&o.up, "up", 0, "speed of the upload line")
	flag.StringVar(&o.disk, "disk", "12GB", "disk budget of the conversion")
	flag.StringVar(&o.memory, "memory", "1GB", "memory budget of the conversion")
	flag.Int64Var(&o.diskLimit, "disk-limit", 12_000_000_000, "fail above this peak of disk, in bytes")
	flag.Int64Var(&o.rssLimit, "rss-limit", 4_000_000_000, "fail above this peak of the resident set, in bytes")
	flag.Float64Var(&o.tolerance, "tolerance", 0, "fail if disk is further from the plan's prediction than this share, e.g. 0.1; 0 only reports")
	flag.StringVar(&o.scratch, "scratch", "", "folder for the program's work (default: a temporary one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := rehearse(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func rehearse(ctx context.Context, o options) error {
	scratch, err := os.MkdirTemp(o.scratch, "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if o.binary == "" {
		o.binary = filepath.Join(scratch, "df11-convert")
		if err := command(ctx, "go", "build", "-o", o.binary, "./cmd/df11-convert").Run(); err != nil {
			return fmt.Errorf("build df11-convert: %w", err)
		}
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	s := hubtest.New(hubtest.WithLinkSpeed(o.down, o.up), hubtest.WithDropUploads())
	defer s.Close()
	m, err := serve(s, o)
	if err != nil {
		return err
	}
	r := result{o: o, files: len(m.Weights), sourceBytes: m.Size()}
	p := program{binary: o.binary, home: scratch, endpoint: s.URL}
	if r.plan, err = p.plan(ctx, o); err != nil {
		return err
	}
	if err := p.convert(ctx, o, &r); err != nil {
		return err
	}
	r.print(os.Stdout)
	return r.check()
}

// program is df11-convert with an environment of its own.
type program struct{ binary, home, endpoint string }

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
func (p program) plan(ctx context.Context, o options) (v planned, err error) {
	args := []string{"plan", source, "--json", "--quiet", "--disk", o.disk, "--memory", o.memory}
	if o.shard != "" {
		args = append(args, "--shard", o.shard)
	}
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
			DiskPush int64 `json:"disk_push_bytes"`
			Memory   int64 `json:"memory_bytes"`
		} `json:"needs"`
	} `json:"estimate"`
}

// convert runs the conversion and measures it.
func (p program) convert(ctx context.Context, o options, r *result) error {
	work := filepath.Join(p.home, "work")
	args := []string{source, "--push", "--repo-id", target, "--work-dir", work, "--disk", o.disk, "--memory", o.memory, "--json", "--quiet"}
	if o.shard != "" {
		args = append(args, "--shard", o.shard)
	}
	c := p.command(ctx, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.Start(); err != nil {
		return err
	}
	disk := watchDisk(c.Process.Pid, work)
	jsonErr := json.NewDecoder(out).Decode(&r.report)
	err = c.Wait()
	r.wall, r.disk, r.rss = time.Since(start), disk(), maxRSS(c.ProcessState)
	if err != nil {
		return fmt.Errorf("df11-convert: %w", err)
	}
	if jsonErr != nil {
		return fmt.Errorf("report: %w", jsonErr)
	}
	return nil
}

// check applies the limits.
func (r *result) check() error {
	var errs []error
	if r.rss > r.o.rssLimit {
		errs = append(errs, fmt.Errorf("the resident set reached %d bytes, %d are allowed", r.rss, r.o.rssLimit))
	}
	if r.disk > r.o.diskLimit {
		errs = append(errs, fmt.Errorf("the disk reached %d bytes, %d are allowed", r.disk, r.o.diskLimit))
	}
	if t := r.o.tolerance; t > 0 && (r.deviation() > t || r.deviation() < -t) {
		errs = append(errs, fmt.Errorf("the plan predicted %d bytes of disk, %d were measured", r.predicted(), r.disk))
	}
	return errors.Join(errs...)
}
