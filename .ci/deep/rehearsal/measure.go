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

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// result holds the predictions and the measurements of a rehearsal.
type result struct {
	o           options
	plan        planned
	files       int
	sourceBytes int64
	steps       []step
	target      map[string]hubtest.File
}

// model describes the model in a line.
func (r *result) model() string {
	return fmt.Sprintf("%d layers in %d files, %s; %d units planned", r.o.layers, r.files,
		gb(r.sourceBytes), len(r.plan.Units))
}

// all sums up the runs. Its memory and disk are the largest of any run, and its result is that of
// the last run.
func (r *result) all() (sum step) {
	for _, s := range r.steps {
		sum.Wall, sum.CPU = sum.Wall+s.Wall, sum.CPU+s.CPU
		sum.Fetched, sum.Uploaded = sum.Fetched+s.Fetched, sum.Uploaded+s.Uploaded
		sum.RSS, sum.Disk = max(sum.RSS, s.RSS), max(sum.Disk, s.Disk)
		sum.Report = s.Report
	}
	return sum
}

func (r *result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	all, part := r.all(), "whole model"
	if r.o.shard != "" {
		part = "part " + r.o.shard
	}
	var bytes, large int64
	for _, f := range r.target {
		if f.SHA256 != "" {
			bytes, large = bytes+f.Size, large+1
		}
	}
	fmt.Fprintf(t, "model\t%s\n", r.model())
	fmt.Fprintf(t, "converted\t%s: %d units, %d weights, every bit compared\n", part,
		all.Report.Units, all.Report.Weights)
	fmt.Fprintf(t, "result\t%d files, %d of them large with %s\n", len(r.target), large, gb(bytes))
	fmt.Fprintf(t, "moved\t%s down, %s up in %.0f s and %.0f s of CPU time\n", gb(all.Fetched),
		gb(all.Uploaded), all.Wall.Seconds(), all.CPU.Seconds())
	fmt.Fprintf(t, "twice\t%s down, %s up\n", gb(all.Fetched-2*all.Report.Weights),
		gb(all.Uploaded-bytes))
	peak := func(name string, measured, planned int64, allowed size) {
		fmt.Fprintf(t, "peak of %s\t%s measured, at most %s planned, %s allowed\n", name,
			gb(measured), gb(planned), gb(int64(allowed)))
	}
	peak("the resident set", all.RSS, r.plan.Needs.Memory, r.o.memory)
	peak("disk", all.Disk, r.plan.Needs.DiskPush, r.o.disk)
	t.Flush()
	if len(r.steps) > 1 {
		printRuns(w, r.steps)
	}
}

// printRuns prints what each run took.
func printRuns(w io.Writer, steps []step) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t,
		"run\tended\tunits\tdown\tup\tseconds\tCPU seconds\tmemory\tdisk\tapi /5 min\tresolve /5 min\tto storage")
	for _, s := range steps {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%.0f\t%.0f\t%s\t%s\t%d\t%d\t%d\n", s.Name, s.End,
			s.Report.Units, gb(s.Fetched), gb(s.Uploaded),
			s.Wall.Seconds(), s.CPU.Seconds(), gb(s.RSS), gb(s.Disk), s.requests["api"],
			s.requests["resolvers"], s.requests["storage"])
	}
	t.Flush()
	fmt.Fprintln(w, "a free account has 1000 api and 5000 resolve requests in 5 minutes")
}

func gb(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// peakRSS is the peak of a running process's resident set, 0 once it has ended. The maximum that
// the system keeps for an ended process will not do: it counts what its parent had when it was
// started.
func peakRSS(pid int) (n int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(peak, &n) // in KiB
	return n << 10
}

// onDisk adds up what a process has in dir, files without a name included: each file once, by the
// blocks that it takes.
func onDisk(pid int, dir string) (n int64) {
	seen := map[uint64]bool{}
	count := func(path string) {
		var s syscall.Stat_t
		if syscall.Stat(path, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFREG &&
			!seen[s.Ino] {
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
