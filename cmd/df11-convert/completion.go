package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/pipeline"
)

// completions returns the values that the shell offers for flags, by the names of the flags. Those
// of [choices] are offered too.
var completions = map[string]func() []string{
	"for":     pipeline.ForReaders,
	"layout":  catalog.LayoutNames,
	"license": pipeline.Licenses,
	"vram":    fits.Cards,
	"like": func() []string {
		return transform(catalog.All(), func(e *catalog.Entry) string { return e.ID })
	},
}

// completeValues makes the shell offer the values of flags, in every command below root.
func completeValues(root *cobra.Command) {
	for _, c := range append(root.Commands(), root) {
		offer := func(f *pflag.Flag) {
			known := completions[f.Name]
			if values := choices[f.Name]; values != nil {
				known = func() []string { return values }
			}
			f.Usage = strings.ReplaceAll(f.Usage, "`", "") // they mark the value's name in help
			if known == nil || c.Flag(f.Name) != f {
				return
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, func(*cobra.Command, []string,
				string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return known(), cobra.ShellCompDirectiveNoFileComp
			})
		}
		c.Flags().VisitAll(offer)
		c.PersistentFlags().VisitAll(offer)
	}
}
