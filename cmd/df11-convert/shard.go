package main

import (
	"cmp"
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
	name, index, count string
	first              int
}{
	{"DF11_SHARD_INDEX", "DF11_SHARD_INDEX", "DF11_SHARD_COUNT", 1},
	{"Kubernetes", "JOB_COMPLETION_INDEX", "", 0},
}

func (f *shardFlags) auto(getenv func(string) string) (pipeline.Part, error) {
	for _, e := range engines {
		text := getenv(e.index)
		if text == "" {
			continue
		}
		count := strconv.Itoa(f.shards)
		if f.shards == 0 && e.count != "" {
			count = getenv(e.count)
		}
		if count == "" || count == "0" {
			return pipeline.Part{}, usagef("--shard auto: %s tells the index but not the number of parts: add --shards n", e.name)
		}
		return partFrom(text, e.first, count, "--shard auto from "+e.name)
	}
	if getenv("SLURM_ARRAY_TASK_ID") != "" {
		return f.slurm(getenv)
	}
	return pipeline.Part{}, usagef("--shard auto: neither Kubernetes, Slurm nor DF11_SHARD_INDEX says which part this is")
}

// partFrom turns an index that is counted from first into a part.
func partFrom(index string, first int, count, what string) (pipeline.Part, error) {
	i, err := strconv.Atoi(index)
	if err != nil {
		return pipeline.Part{}, usagef("%s: index %q, counted from %d, is not a number", what, index, first)
	}
	return parsePart(strconv.Itoa(i-first+1), count, true, what)
}

// slurm maps a task of a job array to a part. Slurm tells the least and the largest id, the step between ids and how many
// there are; the step is 1 for a list as well, so that ids are evenly spaced only if the count agrees.
func (f *shardFlags) slurm(getenv func(string) string) (pipeline.Part, error) {
	const what = "--shard auto from Slurm"
	number := func(name string, def int) (n int) {
		n, err := strconv.Atoi(cmp.Or(getenv("SLURM_ARRAY_TASK_"+name), strconv.Itoa(def)))
		if err != nil {
			return -1
		}
		return n
	}
	id, least, most, step, count := number("ID", -1), number("MIN", -1), number("MAX", -1), number("STEP", 1), number("COUNT", -1)
	switch {
	case id < 0 || least < 0 || most < 0 || step < 1 || count < 1:
		return pipeline.Part{}, usagef("%s: SLURM_ARRAY_TASK_ID, MIN, MAX and COUNT are not all numbers: use --shard i/n", what)
	case (most-least)/step+1 != count || (id-least)%step != 0:
		return pipeline.Part{}, usagef("%s: %d ids from %d to %d in steps of %d are not an array without gaps, such as --array=0-7: use one, or --shard i/n",
			what, count, least, most, step)
	case f.shards != 0 && f.shards != count:
		return pipeline.Part{}, usagef("%s: the array has %d tasks, not %d: to make single parts again, use --shard i/n", what, count, f.shards)
	}
	return parsePart(strconv.Itoa((id-least)/step+1), strconv.Itoa(count), true, what)
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
