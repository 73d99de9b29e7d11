// Command measure runs programs in turns and prints what each needed, as medians: wall time,
// processor time, how busy the cores were, memory. It can also make models for them to work on. It
// judges the memory alone, where a limit is given.
//
//	measure -model NAME -out DIR
//	measure -reads DIR -weights N [-gb X] [-limit-mib N] -out DIR [-rounds R] NAME=COMMAND...
//
// In a command, {out} stands for a folder that is removed before each run, {run} for a number that
// no other run has.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

func main() {
	var b bench
	model := flag.String("model", "", "make this model, and run nothing: qwen, layer, or experts")
	flag.StringVar(&b.reads, "reads", "", "folder whose files are read into the page cache first")
	flag.StringVar(&b.out, "out", "", "folder for results, or for the model")
	flag.Float64Var(&b.weights, "weights", 0,
		"weights that a run converts, to give core-seconds per 10^9 of them")
	flag.Float64Var(&b.gb, "gb", 0,
		"GB that each command moves more than the first, to give the processor time for one")
	flag.Int64Var(&b.limit, "limit-mib", math.MaxInt64,
		"largest resident set that a run may have, in MiB")
	flag.IntVar(&b.rounds, "rounds", 5, "how often each command is run")
	flag.Parse()
	var err error
	switch *model {
	case "":
		err = b.run(flag.Args())
	case "qwen":
		// of Qwen3-0.6B's shape, 596 million weights in one file: 28 units, and an embedding of 311
		// MB that is copied
		err = hubtest.NewQwen3(1, hubtest.ModelOptions{
			Layers: 28, Hidden: 1024, Intermediate: 3072, Heads: 16, KVHeads: 8, HeadDim: 128,
			Vocab: 151936, Tied: true,
		}).Write(b.out)
	case "layer": // one layer of 1.02 thousand million weights, all of them one unit
		err = hubtest.NewLlama(1, hubtest.ModelOptions{
			Layers: 1, Hidden: 8192, Intermediate: 30720, Heads: 64, KVHeads: 64, Vocab: 1024,
		}).Write(b.out)
	case "experts":
		err = writeExperts(b.out)
	default:
		err = fmt.Errorf("there is no model %s", *model)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

type bench struct {
	reads, out  string
	weights, gb float64
	limit       int64
	rounds      int
}

// program is a command and what its runs needed.
type program struct {
	name, command string
	wall, cpu     []float64 // seconds
	peak          int64     // MiB
}

func (b *bench) run(args []string) error {
	var programs []*program
	for _, a := range args {
		name, command, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=COMMAND", a)
		}
		programs = append(programs, &program{name: name, command: command})
	}
	if len(programs) == 0 || b.out == "" {
		return errors.New("-out and commands are needed")
	}
	if err := b.warm(); err != nil {
		return err
	}
	order := slices.Clone(programs)
	for round := range b.rounds {
		for i, p := range order {
			if err := b.once(p, round*len(order)+i); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		slices.Reverse(order)
	}
	if err := b.print(programs); err != nil {
		return err
	}
	for _, p := range programs {
		if p.peak > b.limit {
			return fmt.Errorf("%s: the limit is %d MiB, the peak was %d MiB", p.name, b.limit,
				p.peak)
		}
	}
	return nil
}

// warm reads every file, so that it lies in the page cache.
func (b *bench) warm() error {
	return filepath.WalkDir(cmp.Or(b.reads, b.out),
		func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, f)
			return errors.Join(err, f.Close())
		})
}

func (b *bench) once(p *program, run int) error {
	out := filepath.Join(b.out, p.name)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	syscall.Sync() // what the run before has left to write
	command := strings.NewReplacer("{out}", out, "{run}", strconv.Itoa(run)).Replace(p.command)
	c := exec.Command("sh", "-c", "exec "+command)
	log, err := os.Create(filepath.Join(b.out, p.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	start := time.Now()
	if err := c.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	p.wall = append(p.wall, time.Since(start).Seconds())
	p.cpu = append(p.cpu, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.peak = max(p.peak, usage.Maxrss/1024) // Linux counts in KiB
	}
	return nil
}

func (b *bench) print(programs []*program) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t,
		"\twall s, from–to\tmedian\tof first\tcpu s\tcores busy\tcore-s per 10^9\tpeak MiB\t")
	if b.gb > 0 {
		fmt.Fprint(t, "more cpu s per GB\t")
	}
	fmt.Fprintln(t)
	first := programs[0]
	cores := float64(runtime.NumCPU())
	for _, p := range programs {
		var busy []float64
		for i := range p.wall {
			busy = append(busy, p.cpu[i]/p.wall[i]/cores*100)
		}
		fmt.Fprintf(t, "%s\t%.2f–%.2f\t%.2f\t%.2f\t%.2f\t%.0f%%\t%.2f\t%d\t", p.name,
			slices.Min(p.wall), slices.Max(p.wall),
			median(p.wall), median(p.wall)/median(first.wall), median(p.cpu), median(busy),
			median(p.cpu)/b.weights*1e9, p.peak)
		if b.gb > 0 && p != first {
			fmt.Fprintf(t, "%.2f\t", (median(p.cpu)-median(first.cpu))/b.gb)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
