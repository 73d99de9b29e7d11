//go:build linux

// Package rehearsal converts a model of the shapes of Llama-3.1-405B, from a Hub inside the test to the same Hub, with
// df11-convert as a program of its own, and measures the memory and the disk that the program takes. It does not judge the
// result bytes by themselves: weights are made when they are asked for, and uploads are hashed and dropped, unless parts are
// to be finished, which reads the uploads again.
package rehearsal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// The repos of the rehearsal.
const (
	source = "rehearsal/Llama-3.1-405B"
	target = "rehearsal/Llama-3.1-405B-DF11"
)

// diskLimit is the peak of disk, in bytes, above which the rehearsal fails.
const diskLimit = 12_000_000_000

type options struct {
	layers, scale, finish      int
	elsewhere                  int
	shard, disk, memory        string
	compare                    bool
	down, up, rssLimit, kill   int64
	tolerance, memoryTolerance float64
	fetched                    float64
}

// flags are those of the rehearsal, which go behind -args.
var flags = registerFlags()

func registerFlags() *options {
	var o options
	flag.IntVar(&o.layers, "layers", 126, "layers of the model: 6.4 GB each")
	flag.StringVar(&o.shard, "shard", "", "convert only this part, i/n; source hashes are then not computed")
	flag.IntVar(&o.scale, "scale", 1, "divide every dimension but the number of layers by this: 16 gives 3.2 GB in all")
	flag.IntVar(&o.finish, "finish", 0, "convert this many parts, one after the other, and finish them; uploads are stored in the temporary folder")
	flag.BoolVar(&o.compare, "compare", true, "with -finish: convert in one run as well and compare the repos")
	flag.Int64Var(&o.down, "down", 0, "speed of the download line in bytes per second, 0 for no limit")
	flag.Int64Var(&o.up, "up", 0, "speed of the upload line")
	flag.StringVar(&o.disk, "disk", "12GB", "disk budget of the conversion")
	flag.StringVar(&o.memory, "memory", "1GB", "memory budget of the conversion")
	flag.Int64Var(&o.rssLimit, "rss-limit", 4_000_000_000, "fail above this peak of the resident set, in bytes")
	flag.Float64Var(&o.tolerance, "tolerance", 0, "fail if the plan for a slow upload line is wrong about the disk by more than this share, e.g. 0.1; 0 only reports")
	flag.Float64Var(&o.memoryTolerance, "memory-tolerance", 0, "the same for memory")
	flag.Int64Var(&o.kill, "kill", 0, "kill the conversion once this many bytes have arrived, and start it again on the same disk")
	flag.IntVar(&o.elsewhere, "elsewhere", 0, "with -kill: kill so many runs, each on a machine that has nothing of the one before, and measure what is fetched in all")
	flag.Float64Var(&o.fetched, "fetched", 0, "with -elsewhere: fail if all runs together fetch more than this many times the source")
	return &o
}

// TestRehearsal takes hours at full size, so it runs only with flags that say how much of it to do: docs/scale.md has them.
func TestRehearsal(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || !strings.HasPrefix(f.Name, "test.") })
	if !asked {
		t.Skip("no rehearsal was asked for: say how much of it to do, such as -args -shard 1/126")
	}
	if err := rehearse(t.Context(), *flags); err != nil {
		t.Fatal(err)
	}
}

func rehearse(ctx context.Context, o options) error {
	home, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	p := program{options: o, binary: filepath.Join(home, "df11-convert"), home: home}
	if err := command(ctx, "go", "build", "-o", p.binary, "github.com/df11-convert/df11-convert/cmd/df11-convert").Run(); err != nil {
		return fmt.Errorf("build df11-convert: %w", err)
	}
	uploads := hubtest.WithDropUploads()
	if o.finish > 0 {
		uploads = hubtest.WithPushDir(filepath.Join(home, "stored"))
	}
	p.hub = hubtest.New(hubtest.WithLinkSpeed(o.down, o.up), uploads)
	defer p.hub.Close()
	m, err := p.serve(ctx)
	if err != nil {
		return err
	}
	r := result{o: o, files: len(m.Weights), sourceBytes: m.Size()}
	if r.plan, err = p.plan(ctx); err != nil {
		return err
	}
	if o.finish > 0 {
		return p.finishParts(ctx, &r)
	}
	if o.kill > 0 {
		for range max(1, o.elsewhere) {
			sent, err := p.killed(ctx)
			if err != nil {
				return err
			}
			r.before += sent
			if o.elsewhere > 0 {
				if err := p.leave(); err != nil {
					return err
				}
			}
		}
	}
	if r.step, err = p.convert(ctx, p.part()...); err != nil {
		return err
	}
	r.after = p.sent()
	r.print(os.Stdout)
	needs := r.plan.Estimate.Needs
	if times := r.fetched(); o.fetched > 0 && times > o.fetched {
		return fmt.Errorf("%.2f times the source was fetched", times)
	}
	return errors.Join(r.limits(o), deviates("disk", needs.DiskPush, r.disk, o.tolerance), deviates("memory", needs.Memory, r.rss, o.memoryTolerance))
}

// limits checks the limits that hold for every step.
func (s *step) limits(o options) error {
	if s.rss > o.rssLimit || s.disk > diskLimit {
		return fmt.Errorf("%s: the resident set reached %d bytes, %d are allowed, and the disk %d bytes, %d are allowed",
			s.name, s.rss, o.rssLimit, s.disk, int64(diskLimit))
	}
	return nil
}

// deviation is the error of a prediction, as a share of the measured value.
func deviation(predicted, measured int64) float64 {
	return float64(predicted-measured) / float64(max(1, measured))
}

// deviates refuses a prediction whose error is above the tolerance; 0 tolerates everything.
func deviates(what string, predicted, measured int64, tolerance float64) error {
	share := deviation(predicted, measured)
	if tolerance == 0 || math.Abs(share) <= tolerance {
		return nil
	}
	return fmt.Errorf("the plan is wrong about %s by %.0f %%", what, 100*share)
}
