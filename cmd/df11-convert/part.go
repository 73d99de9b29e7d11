package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/pipeline"
)

// partFlags divide one model among machines. Each makes one part; the flag is called --shard, and makes no weight shards.
type partFlags struct {
	which  string
	count  int
	finish bool
}

func (f *partFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.which, "shard", "", "make only `part` i of n: i/n, counted from 1, or auto inside Kubernetes or Slurm")
	p.IntVar(&f.count, "shards", 0, "number of parts, where --shard auto can't find it out")
	p.BoolVar(&f.finish, "finish", false, "complete what the parts have published: check, verify, write the rest")
	group(p, groupDistributed, "shard", "shards", "finish")
}

// apply puts the flags into the options.
func (f *partFlags) apply(opt *pipeline.Options) (err error) {
	if opt.Part, err = f.part(os.Getenv); err != nil {
		return err
	}
	opt.Finish = f.finish
	if (f.finish || opt.Part != spans.Part{}) && opt.Push == nil {
		return usagef("--shard and --finish need --push")
	}
	return nil
}

// part is the part that the flags ask for. The environment alone never divides anything.
func (f *partFlags) part(getenv func(string) string) (spans.Part, error) {
	switch {
	case f.which == "" && f.count != 0:
		return spans.Part{}, usagef("--shards needs --shard auto")
	case f.which == "":
		return spans.Part{}, nil
	case f.which == "auto":
		return f.auto(getenv)
	}
	i, n, _ := strings.Cut(f.which, "/")
	return newPart(number(i), number(n), "--shard "+f.which)
}

// auto asks the engine that runs this process. Kubernetes does not tell how many parts there are.
func (f *partFlags) auto(getenv func(string) string) (spans.Part, error) {
	own, pod := getenv("DF11_SHARD_INDEX"), getenv("JOB_COMPLETION_INDEX")
	switch {
	case own != "":
		return countedPart("DF11_SHARD_INDEX", own, 1, cmp.Or(f.count, number(cmp.Or(getenv("DF11_SHARD_COUNT"), "0"))))
	case pod != "":
		return countedPart("Kubernetes", pod, 0, f.count)
	case getenv("SLURM_ARRAY_TASK_ID") != "":
		return f.slurm(getenv)
	}
	return spans.Part{}, usagef("--shard auto: neither Kubernetes, Slurm nor DF11_SHARD_INDEX says which part this is")
}

// countedPart is the part with an index that an engine counts from first.
func countedPart(engine, index string, first, count int) (spans.Part, error) {
	if count == 0 {
		return spans.Part{}, usagef("--shard auto: %s tells the index but not the number of parts: add --shards n", engine)
	}
	return newPart(number(index)-first+1, count, fmt.Sprintf("--shard auto from %s, index %q", engine, index))
}

// slurm maps a task of a job array to a part. Slurm tells the least and the largest id, the step between ids and the
// number of tasks. It also gives a step of 1 for a list of ids, so ids are evenly spaced only if the number agrees.
func (f *partFlags) slurm(getenv func(string) string) (spans.Part, error) {
	const what = "--shard auto from Slurm"
	task := func(name string) int { return number(getenv("SLURM_ARRAY_TASK_" + name)) }
	id, least, most, count := task("ID"), task("MIN"), task("MAX"), task("COUNT")
	step := number(cmp.Or(getenv("SLURM_ARRAY_TASK_STEP"), "1"))
	switch {
	case id < 0 || least < 0 || most < 0 || step < 1 || count < 1:
		return spans.Part{}, usagef("%s: SLURM_ARRAY_TASK_ID, MIN, MAX and COUNT are not all numbers: use --shard i/n", what)
	case (most-least)/step+1 != count || (id-least)%step != 0:
		return spans.Part{}, usagef("%s: an array of %d with ids from %d to %d in steps of %d has gaps: "+
			"use one without, such as --array=0-7, or --shard i/n", what, count, least, most, step)
	case f.count != 0 && f.count != count:
		return spans.Part{}, usagef("%s: the array is of %d, not of %d: to make single parts again, use --shard i/n", what, count, f.count)
	}
	return newPart((id-least)/step+1, count, what)
}

// number reads a whole number; -1 is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// newPart checks that part i of n exists; what names the place that asks for it.
func newPart(i, n int, what string) (spans.Part, error) {
	p := spans.Part{I: i, N: n}
	if p.Whole() || p.Check() != nil {
		return spans.Part{}, usagef("%s: want i/n with 1 ≤ i ≤ n ≤ %d", what, spans.MaxParts)
	}
	return p, nil
}
