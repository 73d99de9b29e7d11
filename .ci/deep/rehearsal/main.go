// Command rehearsal converts a model of the shapes of Llama-3.1-405B, from a Hub in this process to
// the same Hub, with df11-convert as a program of its own. It measures the time, the memory, and
// the disk that the program takes. It doesn't judge the result bytes by themselves: weights are
// made when they are asked for, and uploads are hashed and dropped, unless parts are to be finished
// or a whole conversion is killed, which reads the uploads again. At full size it takes hours:
// docs/measured.md has an example. It runs on Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// The repos of the rehearsal.
const (
	source = "rehearsal/Llama-3.1-405B"
	target = "rehearsal/Llama-3.1-405B-DF11"
)

type options struct {
	layers, scale, finish int
	kills, elsewhere      int
	shard                 string
	compare               bool
	disk, memory          size
	down, up, kill        size
}

// size is a number of bytes, or of bytes per second, that is written as 14e9 or 14000000000.
type size int64

func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }

func (s *size) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	*s = size(n)
	return err
}

// registerFlags adds the flags, which say how much to do.
func registerFlags() *options {
	o := options{disk: 14e9, memory: 1e9}
	flag.IntVar(&o.layers, "layers", 126, "layers of the model: 6.4 GB each")
	flag.StringVar(&o.shard, "shard", "",
		"convert only this part, i/n; source hashes are then not computed")
	flag.IntVar(&o.scale, "scale", 1,
		"divide every dimension but the number of layers by this: 16 gives 3.2 GB in all")
	flag.IntVar(&o.finish, "finish", 0,
		"convert this many parts, one after the other, and finish them; uploads are kept in memory")
	flag.BoolVar(&o.compare, "compare", true,
		"with -finish: convert in one run as well and compare the repos")
	flag.Var(&o.down, "down", "speed of the download line in bytes per second, 0 for no limit")
	flag.Var(&o.up, "up", "speed of the upload line")
	flag.Var(&o.disk, "disk", "disk budget of the conversion, in bytes; more is a failure")
	flag.Var(&o.memory, "memory",
		"memory budget of the conversion, in bytes; a larger resident set is a failure")
	flag.Var(&o.kill, "kill",
		"kill the conversion once this many bytes have arrived, and start it again on the same disk")
	flag.IntVar(&o.kills, "kills", 1, "with -kill: kill so many runs, one after the other")
	flag.IntVar(&o.elsewhere, "elsewhere", 0,
		"with -kill: start again after the first so many kills as on a machine that has nothing of the run before")
	return &o
}

func main() {
	o := registerFlags()
	flag.Parse()
	if err := rehearse(context.Background(), *o); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func rehearse(ctx context.Context, o options) error {
	home, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	p := program{options: o, binary: filepath.Join(home, "df11-convert"), home: home}
	if err := p.build(ctx); err != nil {
		return err
	}
	opts := []hubtest.Option{hubtest.WithLinkSpeed(int64(o.down), int64(o.up))}
	if o.finish == 0 && (o.kill == 0 || o.shard != "") {
		opts = append(opts, hubtest.WithDropUploads())
	}
	p.hub = hubtest.New(opts...)
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
	if err := p.convert(ctx); err != nil {
		return err
	}
	r.steps, r.target = p.steps, p.hub.Files(target, "main")
	r.print(os.Stdout)
	if o.shard == "" {
		if err := p.whole(&r); err != nil {
			return err
		}
	}
	needs, all := r.plan.Needs, r.all()
	return errors.Join(exceeds("disk", all.Disk, needs.DiskPush),
		exceeds("memory", all.RSS, needs.Memory))
}

// exceeds refuses a measured peak above the bound that the plan names.
func exceeds(what string, measured, bound int64) error {
	if measured <= bound {
		return nil
	}
	return fmt.Errorf("%d bytes of %s were taken, and the plan says at most %d", measured, what,
		bound)
}
