//go:build linux

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// result is what was predicted and measured.
type result struct {
	o           options
	plan        planned
	files       int
	sourceBytes int64
	before      int64 // bytes of weights that came before a kill
	after       int64 // and in the run that ended well
	step
}

func (r *result) predicted() int64 { return r.plan.Estimate.Needs.DiskPush }

// deviation is how far the disk is from its prediction, as a share of what was measured; memoryDeviation is the same for
// the resident set.
func (r *result) deviation() float64 { return off(r.predicted(), r.disk) }

func (r *result) memoryDeviation() float64 { return off(r.plan.Estimate.Needs.Memory, r.rss) }

func off(predicted, measured int64) float64 {
	return float64(predicted-measured) / float64(max(1, measured))
}

func (r *result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	in, out := r.report.Traffic["source"].BytesIn, r.report.Traffic["target"].BytesOut
	part := "whole model"
	if r.o.shard != "" {
		part = "part " + r.o.shard
	}
	fmt.Fprintf(t, "model\t%d layers in %d files, %s; %d units planned\n", r.o.layers, r.files, gb(r.sourceBytes), len(r.plan.Units))
	fmt.Fprintf(t, "converted\t%s: %d units, %d weights, every bit compared\n", part, r.report.Units, r.report.Weights)
	fmt.Fprintf(t, "moved\t%s down, %s up in %.0f s\n", gb(in), gb(out), r.wall.Seconds())
	if r.before > 0 {
		fmt.Fprintf(t, "killed\tafter %s; %s came in the second run, %s more than all weights have\n", gb(r.before), gb(r.after), gb(r.before+r.after-2*r.report.Weights))
	}
	fmt.Fprintf(t, "peak of the resident set\t%s measured, %s planned (%+.1f %%), %s allowed\n", gb(r.rss), gb(r.plan.Estimate.Needs.Memory), 100*r.memoryDeviation(), gb(r.o.rssLimit))
	fmt.Fprintf(t, "peak of disk\t%s measured, %s planned (%+.1f %%), %s allowed\n", gb(r.disk), gb(r.predicted()), 100*r.deviation(), gb(r.o.diskLimit))
	t.Flush()
}

func gb(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// peaks are the most that a process has had of either, in bytes.
type peaks struct{ disk, rss int64 }

// watch looks many times a second at what a process has in memory, and on disk in dir, files without a name included; the
// function that it returns ends that and gives the peaks.
func watch(pid int, dir string) func() peaks {
	stop, result := make(chan struct{}), make(chan peaks)
	go func() {
		var most peaks
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most.disk, most.rss = max(most.disk, onDisk(pid, dir)), max(most.rss, peakRSS(pid))
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() peaks { close(stop); return <-result }
}

// peakRSS is the peak of a running process's resident set. The maximum that the system tells once it has ended will not
// do: it counts what this process had when it started the other.
func peakRSS(pid int) (n int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if k, _ := fmt.Sscanf(line, "VmHWM: %d kB", &n); k == 1 {
			return n << 10
		}
	}
	return 0 // it has ended
}

// onDisk counts each file once, by what it takes on disk.
func onDisk(pid int, dir string) (n int64) {
	seen := map[uint64]bool{}
	count := func(path string) {
		var s syscall.Stat_t
		if syscall.Stat(path, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFREG && !seen[s.Ino] {
			seen[s.Ino] = true
			n += 512 * s.Blocks
		}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			count(path)
		}
		return nil
	})
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(fds)
	for _, e := range entries {
		fd := filepath.Join(fds, e.Name())
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			count(fd)
		}
	}
	return n
}
