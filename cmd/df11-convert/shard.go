package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/pipeline"
)

// shardFlags split one model over machines.
type shardFlags struct {
	shard  string
	shards int
	finish bool
}

func (f *shardFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.shard, "shard", "", "make only part i of n: i/n, counted from 1, or auto inside Kubernetes or Slurm")
	p.IntVar(&f.shards, "shards", 0, "number of parts, where --shard auto can't find it out")
	p.BoolVar(&f.finish, "finish", false, "complete what the parts have published: check, prove, write the rest")
}

// part is the share that the flags ask for. The environment alone never splits anything.
func (f *shardFlags) part(getenv func(string) string) (pipeline.Part, error) {
	switch {
	case f.shard == "" && f.shards != 0:
		return pipeline.Part{}, usagef("--shards needs --shard auto")
	case f.shard == "":
		return pipeline.Part{}, nil
	case f.shard == "auto":
		return f.auto(getenv)
	}
	i, n, ok := strings.Cut(f.shard, "/")
	return parsePart(i, n, ok, "--shard "+f.shard)
}

// engines are the variables that tell an index and a count, and what the index is counted from. A count of "" comes from
// --shards.
var engines = []struct {
	name, index, first, count string
}{
	{"DF11_SHARD_INDEX", "DF11_SHARD_INDEX", "1", "DF11_SHARD_COUNT"},
	{"Kubernetes", "JOB_COMPLETION_INDEX", "0", ""},
	{"Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
}

func (f *shardFlags) auto(getenv func(string) string) (pipeline.Part, error) {
	for _, e := range engines {
		text := getenv(e.index)
		if text == "" {
			continue
		}
		first := e.first
		if v := getenv(e.first); v != "" {
			first = v
		}
		count := strconv.Itoa(f.shards)
		if f.shards == 0 && e.count != "" {
			count = getenv(e.count)
		}
		if count == "" || count == "0" {
			return pipeline.Part{}, usagef("--shard auto: %s tells the index but not the number of parts: add --shards n", e.name)
		}
		return partFrom(text, first, count, "--shard auto from "+e.name)
	}
	return pipeline.Part{}, usagef("--shard auto: neither Kubernetes, Slurm nor DF11_SHARD_INDEX says which part this is")
}

// partFrom turns an index that is counted from first into a part.
func partFrom(index, first, count, what string) (pipeline.Part, error) {
	i, err := strconv.Atoi(index)
	f, err2 := strconv.Atoi(first)
	if err != nil || err2 != nil {
		return pipeline.Part{}, usagef("%s: index %q, counted from %q, is not a number", what, index, first)
	}
	return parsePart(strconv.Itoa(i-f+1), count, true, what)
}

func parsePart(i, n string, ok bool, what string) (pipeline.Part, error) {
	x, err := strconv.Atoi(i)
	y, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || y < 1 || x < 1 || x > y {
		return pipeline.Part{}, usagef("%s: want i/n with 1 ≤ i ≤ n", what)
	}
	return pipeline.Part{I: x, N: y}, nil
}

// apply puts the flags into the options.
func (f *shardFlags) apply(opt *pipeline.Options) (err error) {
	if opt.Part, err = f.part(os.Getenv); err != nil {
		return err
	}
	opt.Finish = f.finish
	if (f.finish || opt.Part != pipeline.Part{}) && opt.Push == nil {
		return usagef("--shard and --finish need --push")
	}
	return nil
}
