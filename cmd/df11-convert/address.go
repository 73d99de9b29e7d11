package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
)

// namedModel is what address prints with --json: the shortest text that names the same, and its parts.
type namedModel struct {
	Address  string `json:"address"`
	Repo     string `json:"repo"`
	Revision string `json:"revision,omitempty"`
	File     string `json:"file,omitempty"`
}

// addressCommand answers what a text names, so that the page and the Action need no parser of their own.
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
			u.result(namedModel{a.String(), a.Repo, a.Revision, a.File}, a.String(),
				func(w io.Writer) { _, _ = io.WriteString(w, a.String()+"\n") })
			return nil
		})
}
