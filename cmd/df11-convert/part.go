package main

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// partFlags divide one model among machines, and each makes one part. The flag is called
// --shard, but a part isn't a shard of the weights.
type partFlags struct {
	which  string
	finish bool
}

func (f *partFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.which, "shard", "",
		"make only `part` i/n of each model; auto/n takes an array task's index")
	p.BoolVar(&f.finish, "finish", false,
		"complete the published parts: check, verify, and add the rest")
}

// part returns the part that --shard asks for; the zero Part is the whole model.
func (f *partFlags) part() (spans.Part, error) { return parsePart("--shard", f.which) }

// parsePart parses a flag's value, i/n or auto/n; "" is the zero Part.
func parsePart(flag, value string) (spans.Part, error) {
	if value == "" {
		return spans.Part{}, nil
	}
	index, count, _ := strings.Cut(value, "/")
	i, n := number(index), number(count)
	if index == "auto" {
		task, variable, err := taskIndex(flag)
		if err != nil {
			return spans.Part{}, err
		}
		if i = task + 1; n >= 1 && i > n {
			return spans.Part{}, usagef("%s %s: %s is %s, which makes this task %d of %d", flag, value,
				variable, os.Getenv(variable), i, n)
		}
	}
	p := spans.Part{I: i, N: n}
	if p.Whole() || p.Check() != nil {
		return spans.Part{}, usagef("%s %s: want i/n with 1 ≤ i ≤ n ≤ %d", flag, value, spans.MaxParts)
	}
	return p, nil
}

// taskIndex returns this process's index, counted from 0, and the variable that has it: that of a pod in
// a Kubernetes Indexed Job, of a task in a Slurm array, or of a job in a GitLab matrix.
func taskIndex(flag string) (index int, variable string, err error) {
	variable, first := "JOB_COMPLETION_INDEX", "0"
	if os.Getenv(variable) == "" {
		variable, first = "SLURM_ARRAY_TASK_ID", cmp.Or(os.Getenv("SLURM_ARRAY_TASK_MIN"), "0")
	}
	if os.Getenv(variable) == "" {
		variable, first = "CI_NODE_INDEX", "1"
	}
	index = number(os.Getenv(variable))
	if number(first) < 0 || index < number(first) {
		return 0, "", hint.On(usagef("%s auto/n: this isn't a task of an array", flag), hint.Task)
	}
	return index - number(first), variable, nil
}

// number parses a whole number; it returns -1 for other text.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
