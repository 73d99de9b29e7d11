package main

import (
	"io"

	"github.com/spf13/cobra"
)

func planCommand(u *ui) *cobra.Command {
	var f sourceFlags
	var e estimateFlags
	var writeDict string
	c := &cobra.Command{
		Use:   "plan SOURCE",
		Short: "Show what a conversion would do, before any weight moves",
		Long: `plan reads headers, small files and a few samples of the weights. It tells whether the source can be converted, into
what, how big the result will be, what it takes to make it, what passes through unchanged and why, and which readers
will load it.`,
		Example: `  df11-convert plan meta-llama/Llama-3.1-8B
  df11-convert plan ./my-model --json
  df11-convert plan Qwen/Qwen3-8B --bandwidth 30MB/s
  df11-convert plan org/new-arch --write-pattern-dict dict.json   # a dict to start from`,
		Args: exactArgs(1, "SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			src, err := f.open(c.Context(), u, args[0])
			if err != nil {
				return err
			}
			defer src.Close()
			if writeDict != "" {
				if err := writePatternDict(writeDict, src.plan.PatternDict); err != nil {
					return err
				}
			}
			estimate, err := e.estimate(c.Context(), u, src)
			if err != nil {
				return err
			}
			v := newPlanView(src, estimate)
			v.Estimate = e.view(src, estimate)
			return u.result(v, func(w io.Writer) { v.print(w) })
		},
	}
	f.register(c.Flags())
	e.register(c.Flags())
	c.Flags().Var(&e.bandwidth, "bandwidth", "speed of the line for which times are given, e.g. 30MB/s (default 125 MB/s, a gigabit)")
	c.Flags().StringVar(&writeDict, "write-pattern-dict", "", "write the pattern dict of the plan to this file")
	return c
}
