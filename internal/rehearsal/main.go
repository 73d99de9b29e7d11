//go:build linux

// Command rehearsal converts a model of the shapes of Llama-3.1-405B, from a Hub inside this process to the same Hub, by
// df11-convert as a program of its own, and measures the memory and the disk that it takes. It judges no result bytes by
// themselves: weights are made when they are asked for, and what is uploaded is hashed and dropped, unless parts are to be
// finished, which reads it again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// The repos of the rehearsal.
const (
	source = "rehearsal/Llama-3.1-405B"
	target = "rehearsal/Llama-3.1-405B-DF11"
)

type options struct {
	layers, scale              int
	shard, binary              string
	finish                     int
	compare                    bool
	down, up                   int64
	disk, memory               string
	diskLimit                  int64
	rssLimit                   int64
	tolerance, memoryTolerance float64
	kill                       int64
	scratch                    string
}

func main() {
	var o options
	flag.IntVar(&o.layers, "layers", 126, "layers of the model: 6.4 GB each")
	flag.StringVar(&o.shard, "shard", "", "convert only this part, i/n; source hashes are then not computed")
	flag.IntVar(&o.scale, "scale", 1, "divide every dimension but the number of layers by this: 16 gives 3.2 GB in all")
	flag.IntVar(&o.finish, "finish", 0, "convert this many parts, one after the other, and finish them; uploads are stored below -scratch")
	flag.BoolVar(&o.compare, "compare", true, "with -finish: convert in one run as well and compare the repos")
	flag.StringVar(&o.binary, "df11-convert", "", "the program (default: it is built)")
	flag.Int64Var(&o.down, "down", 0, "speed of the download line in bytes per second, 0 for no limit")
	flag.Int64Var(&o.up, "up", 0, "speed of the upload line")
	flag.StringVar(&o.disk, "disk", "12GB", "disk budget of the conversion")
	flag.StringVar(&o.memory, "memory", "1GB", "memory budget of the conversion")
	flag.Int64Var(&o.diskLimit, "disk-limit", 12_000_000_000, "fail above this peak of disk, in bytes")
	flag.Int64Var(&o.rssLimit, "rss-limit", 4_000_000_000, "fail above this peak of the resident set, in bytes")
	flag.Float64Var(&o.tolerance, "tolerance", 0, "fail if the disk is further from the plan's prediction, which is for a slow upload line, than this share, e.g. 0.1; 0 only reports")
	flag.Float64Var(&o.memoryTolerance, "memory-tolerance", 0, "the same for memory")
	flag.Int64Var(&o.kill, "kill", 0, "kill the conversion once so many bytes have arrived, and start it again on the same disk")
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
	opts := []hubtest.Option{hubtest.WithLinkSpeed(o.down, o.up)}
	if o.finish == 0 {
		opts = append(opts, hubtest.WithDropUploads())
	} else {
		opts = append(opts, hubtest.WithPushDir(filepath.Join(scratch, "stored")))
	}
	s := hubtest.New(opts...)
	defer s.Close()
	p := program{binary: o.binary, home: scratch, endpoint: s.URL, hub: s}
	m, err := p.serve(ctx, s, o)
	if err != nil {
		return err
	}
	r := result{o: o, files: len(m.Weights), sourceBytes: m.Size()}
	if r.plan, err = p.plan(ctx, o); err != nil {
		return err
	}
	if o.finish > 0 {
		return p.finish(ctx, o, &r)
	}
	if o.kill > 0 {
		if r.before, err = p.killed(ctx, o); err != nil {
			return err
		}
	}
	if r.step, err = p.convert(ctx, o, part(o.shard), target); err != nil {
		return err
	}
	r.after = p.sent()
	r.print(os.Stdout)
	return r.check()
}

// part is the flag for a part, or none.
func part(shard string) []string {
	if shard == "" {
		return nil
	}
	return []string{"--shard", shard}
}

// check applies the limits.
func (r *result) check() error {
	return errors.Join(r.limits(r.o), deviates("disk", r.deviation(), r.o.tolerance), deviates("memory", r.memoryDeviation(), r.o.memoryTolerance))
}

// deviates reports a prediction that is off by more than a tolerance; 0 tolerates everything.
func deviates(what string, share, tolerance float64) error {
	if tolerance == 0 || math.Abs(share) <= tolerance {
		return nil
	}
	return fmt.Errorf("the plan is wrong about %s by %.0f %%", what, 100*share)
}

// limits are those that hold for every step.
func (s *step) limits(o options) error {
	var errs []error
	if s.rss > o.rssLimit {
		errs = append(errs, fmt.Errorf("%s: the resident set reached %d bytes, %d are allowed", s.name, s.rss, o.rssLimit))
	}
	if s.disk > o.diskLimit {
		errs = append(errs, fmt.Errorf("%s: the disk reached %d bytes, %d are allowed", s.name, s.disk, o.diskLimit))
	}
	return errors.Join(errs...)
}
