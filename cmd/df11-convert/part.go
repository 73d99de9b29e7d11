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

// partFlags divide one model among machines. Each makes one part; the flag is called --shard, and
// makes no weight shards.
type partFlags struct {
	which  string
	finish bool
}

func (f *partFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.which, "shard", "",
		"make only `part` i/n, counted from 1; auto/n takes i from Kubernetes or Slurm")
	p.BoolVar(&f.finish, "finish", false,
		"complete what the parts have published: check, verify, write the rest")
}

// apply puts the flags into the options.
func (f *partFlags) apply(opt *pipeline.Options) (err error) {
	if opt.Part, err = f.part(); err != nil {
		return err
	}
	opt.Finish = f.finish
	if (f.finish || opt.Part != spans.Part{}) && opt.Push == nil {
		return usagef("--shard and --finish need --push")
	}
	return nil
}

// part returns the part that --shard asks for; the zero Part is the whole model.
func (f *partFlags) part() (spans.Part, error) {
	if f.which == "" {
		return spans.Part{}, nil
	}
	index, count, _ := strings.Cut(f.which, "/")
	i, n, what := number(index), number(count), "--shard "+f.which
	if index == "auto" {
		task, err := taskIndex()
		if err != nil {
			return spans.Part{}, err
		}
		i, what = task+1, fmt.Sprintf("%s, of which this is index %d", what, task)
	}
	p := spans.Part{I: i, N: n}
	if p.Whole() || p.Check() != nil {
		return spans.Part{}, usagef("%s: want i/n with 1 ≤ i ≤ n ≤ %d", what, spans.MaxParts)
	}
	return p, nil
}

// taskIndex returns the index, counted from 0, that the engine has given to this process:
// Kubernetes to a pod of an Indexed Job, Slurm to a task of an array.
func taskIndex() (int, error) {
	index, first := os.Getenv("JOB_COMPLETION_INDEX"), "0"
	if index == "" {
		index, first = os.Getenv("SLURM_ARRAY_TASK_ID"), cmp.Or(os.Getenv("SLURM_ARRAY_TASK_MIN"),
			"0")
	}
	if number(index) < 0 || number(first) < 0 {
		return 0, usagef(
			"--shard auto/n: neither JOB_COMPLETION_INDEX (Kubernetes) nor SLURM_ARRAY_TASK_ID (Slurm) has the index of this part")
	}
	return number(index) - number(first), nil
}

// number reads a whole number; -1 is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
