//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// errTooSoon says that a program ended before it was to be killed.
var errTooSoon = errors.New("the program ended before it was killed")

// killed starts a conversion and kills it once the Hub has sent so many bytes of weights. It gives the bytes that were sent.
func (p program) killed(ctx context.Context, o options) (sent int64, err error) {
	args := append([]string{"--push", "--repo-id", target, "--work-dir", filepath.Join(p.home, "work"), "--disk", o.disk, "--memory", o.memory, "--quiet"}, part(o.shard)...)
	c := p.command(ctx, append(args, p.source...)...)
	p.hub.ResetLog()
	if err := c.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			return p.sent(), errors.Join(errTooSoon, err)
		case <-time.After(50 * time.Millisecond):
		}
		if p.sent() < o.kill {
			continue
		}
		if err := c.Process.Kill(); err != nil {
			return 0, err
		}
		exit := (*exec.ExitError)(nil)
		if err := <-ended; !errors.As(err, &exit) {
			return 0, fmt.Errorf("after the kill: %w", err)
		}
		return p.sent(), nil
	}
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
