//go:build linux

package rehearsal

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

// result holds the predictions and the measurements of a rehearsal.
type result struct {
	o           options
	plan        planned
	files       int
	sourceBytes int64
	before      int64 // bytes of weights that came before a kill, or several
	after       int64 // and in the run that ended well
	step
}

// model describes the model in a line.
func (r *result) model() string {
	return fmt.Sprintf("%d layers in %d files, %s; %d units planned", r.o.layers, r.files, gb(r.sourceBytes), len(r.plan.Units))
}

func (r *result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	in, out := r.report.Traffic["source"].BytesIn, r.report.Traffic["target"].BytesOut
	part := "whole model"
	if r.o.shard != "" {
		part = "part " + r.o.shard
	}
	fmt.Fprintf(t, "model\t%s\n", r.model())
	fmt.Fprintf(t, "converted\t%s: %d units, %d weights, every bit compared\n", part, r.report.Units, r.report.Weights)
	fmt.Fprintf(t, "moved\t%s down, %s up in %.0f s\n", gb(in), gb(out), r.wall.Seconds())
	if r.o.elsewhere > 0 {
		fmt.Fprintf(t, "killed\t%d times after %s, each time on another machine; %s came in all, %.2f times the source\n",
			r.o.elsewhere, gb(r.o.kill), gb(r.before+r.after), r.fetched())
	} else if r.before > 0 {
		fmt.Fprintf(t, "killed\tafter %s; %s came in the second run, %s more than all weights have\n", gb(r.before), gb(r.after), gb(r.before+r.after-2*r.report.Weights))
	}
	peak := func(name string, measured, planned, allowed int64) {
		fmt.Fprintf(t, "peak of %s\t%s measured, %s planned (%+.1f %%), %s allowed\n", name, gb(measured), gb(planned), 100*deviation(planned, measured), gb(allowed))
	}
	peak("the resident set", r.rss, r.plan.Estimate.Needs.Memory, r.o.rssLimit)
	peak("disk", r.disk, r.plan.Estimate.Needs.DiskPush, diskLimit)
	t.Flush()
}

// fetched is how many times the source was fetched by all runs together.
func (r *result) fetched() float64 { return float64(r.before+r.after) / float64(r.sourceBytes) }

func gb(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// peaks are the largest disk and resident set of a process, in bytes.
type peaks struct{ disk, rss int64 }

// watch looks many times a second at the memory of a process, and at its files in dir, those without a name included; the
// returned function ends that and gives the peaks.
func watch(pid int, dir string) func() peaks {
	stop, result := make(chan struct{}), make(chan peaks)
	go func() {
		var most peaks
		for {
			most.disk, most.rss = max(most.disk, onDisk(pid, dir)), max(most.rss, peakRSS(pid))
			select {
			case <-time.After(10 * time.Millisecond):
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() peaks { close(stop); return <-result }
}

// peakRSS is the peak of a running process's resident set, 0 once it has ended. The maximum that the system keeps for an
// ended process will not do: it counts what its parent had when it was started.
func peakRSS(pid int) (n int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(peak, &n) // in KiB
	return n << 10
}

// onDisk counts each file once, by the blocks that it takes.
func onDisk(pid int, dir string) (n int64) {
	seen := map[uint64]bool{}
	count := func(path string) {
		var s syscall.Stat_t
		if syscall.Stat(path, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFREG && !seen[s.Ino] {
			seen[s.Ino] = true
			n += 512 * s.Blocks
		}
	}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		count(path)
		return nil // what vanishes meanwhile is not there
	})
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			count(fd)
		}
	}
	return n
}
