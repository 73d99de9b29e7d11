package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// patience is a visitor's, not a batch job's.
const patience = 15 * time.Second

// addCommands adds the commands that a page runs, which only read from a Hub. That keeps what the
// others need out of the binary.
func addCommands(root *cobra.Command, u *ui) {
	root.AddCommand(planCommand(u), verifyCommand(u), addressCommand(u))
}

// addressCommand answers what a visitor's text names, so that the page needs no parser of its own.
func addressCommand(u *ui) *cobra.Command {
	return withArgument(&cobra.Command{Use: "address TEXT", Hidden: true},
		func(_ context.Context, text string) error {
			a, err := address.Parse(text)
			switch {
			case err != nil:
			case a.Repo == "":
				err = hint.On(usagef("no model is named"), hint.NotModel)
			case names.CheckNewRepo(a.Repo) != nil:
				err = address.NotFound(a.ID())
			}
			if err != nil {
				return err
			}
			u.result(map[string]string{"address": a.String()}, a.String(),
				func(w io.Writer) { _, _ = io.WriteString(w, a.String()+"\n") })
			return nil
		})
}
