//go:build !js

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/pipeline"
)

// audienceCommand answers, with the flags of convert, who can see the repo that a conversion would
// publish to, so that the Action knows where nothing may be said of it.
func audienceCommand(u *ui) *cobra.Command {
	f := convertFlags{}
	c := withArgument(&cobra.Command{Use: "audience SOURCE", Hidden: true},
		func(ctx context.Context, source string) error {
			f.target.push = true
			o, err := f.options(u)
			if err != nil {
				return err
			}
			a, err := pipeline.AudienceOf(ctx, source, o)
			if err != nil {
				return err
			}
			u.result(a, a.Repo, func(w io.Writer) {
				printf(w, "%s: %s\n", a.Repo, choose(a.Hidden, "hidden", "visible"))
			})
			return nil
		})
	f.register(c.Flags())
	return c
}
