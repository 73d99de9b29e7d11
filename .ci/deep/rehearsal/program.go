package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// program is df11-convert with an environment of its own.
type program struct {
	options
	binary, home string
	hub          *hubtest.Server
	source       []string // the repo, and flags that belong to it
	steps        []step   // of the conversion, so far
}

// build makes the program.
func (p *program) build(ctx context.Context) error {
	if err := command(ctx, "go", "build", "-o", p.binary,
		"github.com/df11-convert/df11-convert/cmd/df11-convert").Run(); err != nil {
		return fmt.Errorf("build df11-convert: %w", err)
	}
	return nil
}

// machine is the folder that stands for the machine on which the program runs: after the first
// -elsewhere kills it is another one.
func (p *program) machine() string {
	return filepath.Join(p.home, fmt.Sprintf("machine-%d", 1+min(p.killed(), p.elsewhere)))
}

func (p *program) work() string { return filepath.Join(p.machine(), "work") }

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	c := command(ctx, p.binary, append(args, p.source...)...)
	c.Dir = p.home // where no folder has the model's name
	c.Env = []string{
		"HF_ENDPOINT=" + p.hub.URL, "HF_TOKEN=hf_rehearsal",
		"HF_HOME=" + filepath.Join(p.machine(), "hf"),
		"HOME=" + p.machine(), "TMPDIR=" + p.machine(), "PATH=" + os.Getenv("PATH"),
	}
	return c
}

// command starts nothing that outlives this process.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// part is the flag for a part, or none.
func (p *program) part() []string {
	if p.shard == "" {
		return nil
	}
	return []string{"--shard", p.shard}
}

func (p *program) budgets() []string {
	return []string{"--disk", p.disk.String() + "B", "--memory", p.memory.String() + "B"}
}

// planned is the part of the plan command's answer that matters here.
type planned struct {
	Units []struct{}      `json:"units"`
	Dict  json.RawMessage `json:"pattern_dict"`
	Needs struct {
		DiskPush int64 `json:"disk_push_bytes"`
		Memory   int64 `json:"memory_bytes"`
	} `json:"needs"`
}

// plan asks for the prediction; more flags override the budgets.
func (p *program) plan(ctx context.Context, more ...string) (v planned, err error) {
	args := append([]string{"plan", "--json"}, p.budgets()...)
	out, err := p.command(ctx, append(append(args, p.part()...), more...)...).Output()
	if err != nil {
		return v, fmt.Errorf("plan: %w", err)
	}
	return v, json.Unmarshal(out, &v)
}

// convert runs the conversion until it is done, killed and started again as the flags say.
func (p *program) convert(ctx context.Context) error {
	for {
		kills, at := p.killed(), size(0)
		if kills < p.kills {
			at = p.kill
		}
		s, err := p.run(ctx, at, p.part()...)
		if err != nil {
			return err
		}
		if kills < p.elsewhere {
			err = os.RemoveAll(p.machine())
		}
		p.steps = append(p.steps, s)
		if err != nil || s.End == done {
			return err
		}
	}
}

// killed counts the runs that were killed.
func (p *program) killed() (n int) {
	for _, s := range p.steps {
		if s.End == killed {
			n++
		}
	}
	return n
}

// step is one run of the program, measured. Sizes are in bytes.
type step struct {
	Name              string
	End               string // killed or done; empty while it runs
	Wall, CPU         time.Duration
	RSS, Disk         int64 // the largest
	Fetched, Uploaded int64 // by the storage host
	Report            sizes
	requests          map[string]int // by rate bucket, in the busiest five minutes; "storage": all
}

// How a run ends.
const (
	killed = "killed"
	done   = "done"
)

// sizes is what the program prints at its end, as far as it matters here.
type sizes struct {
	Units   int   `json:"units"`
	Weights int64 `json:"weights"`
}

// run makes one run that publishes to the target, and measures it; which names a part, or the
// finish of all. If kill is not 0, the program is killed once the storage host has sent so many
// bytes.
func (p *program) run(ctx context.Context, kill size, which ...string) (step, error) {
	s := step{Name: "one run"}
	if len(which) > 0 {
		s.Name = which[len(which)-1]
	}
	args := append([]string{"--push", "--repo-id", target, "--work-dir", p.work(), "--json"},
		p.budgets()...)
	c := p.command(ctx, append(args, which...)...)
	var out bytes.Buffer
	c.Stdout = &out
	if err := os.MkdirAll(p.machine(), 0o755); err != nil {
		return s, err
	}
	p.hub.ResetLog()
	start := time.Now()
	if err := c.Start(); err != nil {
		return s, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	err := p.watch(&s, c.Process, kill, ended)
	s.Wall, s.CPU = time.Since(start), c.ProcessState.UserTime()+c.ProcessState.SystemTime()
	log := p.hub.Requests()
	s.traffic(log)
	s.requests = busiest(log)
	if _, ok := errors.AsType[*exec.ExitError](err); ok && s.End == killed {
		return s, s.within(p.options)
	}
	if err == nil {
		printed := struct{ Sizes *sizes }{&s.Report}
		s.End, err = done, json.Unmarshal(out.Bytes(), &printed)
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("df11-convert: %w", err)
	case kill > 0:
		return s, fmt.Errorf("the program ended after %d bytes and was to be killed after %d",
			s.Fetched, kill)
	}
	return s, s.within(p.options)
}

// watch looks at a running program many times a second, kills it when it is due, and returns
// the error it ends with.
func (p *program) watch(s *step, process *os.Process, kill size, ended <-chan error) error {
	look, account := time.NewTicker(20*time.Millisecond), time.NewTicker(time.Second/2)
	defer look.Stop()
	defer account.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			s.Disk, s.RSS = max(s.Disk, onDisk(process.Pid, p.work())), max(s.RSS,
				peakRSS(process.Pid))
		case <-account.C:
			if s.traffic(p.hub.Requests()); kill > 0 && s.End == "" && s.Fetched >= int64(kill) {
				s.End = killed
				_ = process.Kill() // if it has ended, ended says so
			}
		}
	}
}

// traffic reads the log of the Hub.
func (s *step) traffic(log []hubtest.Request) {
	s.Fetched, s.Uploaded = 0, 0
	for _, q := range log {
		switch {
		case q.Host == hubtest.HostCDN && q.Method == "GET":
			s.Fetched += q.Sent
		case q.Host == hubtest.HostCDN && q.Method == "PUT":
			s.Uploaded += q.Received
		}
	}
}

// within checks the budgets.
func (s *step) within(o options) error {
	if s.RSS > int64(o.memory) || s.Disk > int64(o.disk) {
		return fmt.Errorf(
			"%s: the resident set reached %d bytes, %d are allowed, and the disk %d bytes, %d are allowed",
			s.Name, s.RSS, o.memory, s.Disk, o.disk)
	}
	return nil
}
