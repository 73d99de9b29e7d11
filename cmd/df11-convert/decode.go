package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

type decodeFlags struct {
	readerFlags
	out   string
	force bool
}

func decodeCommand(u *ui) *cobra.Command {
	var f decodeFlags
	c := withArgument(&cobra.Command{
		Use:   "decode DF11",
		Short: "Write the original safetensors files again",
		Long: `decode turns a DF11 folder or Hub repo back into the original weight files: the
same bytes, the same SHA-256.

By default, it takes the original's headers and hashes from the DF11 model's
manifest. With --against it takes them from the original itself; to hash a local
original, it also reads the weights. Only a file with the right hash gets its
final name. Existing files with the right hash stay, so the same command resumes
a stopped run.`,
		Example: `  df11-convert decode ./Qwen3-8B-DF11    # writes ./Qwen3-8B-BF16
  df11-convert decode DFloat11/Qwen3-8B-DF11 --against Qwen/Qwen3-8B -o ./bf16`,
	}, func(ctx context.Context, arg string) error { return runDecode(ctx, u, &f, arg) })
	f.register(c.Flags())
	c.Flags().StringVarP(&f.out, "output", "o", "",
		"`folder` for the decoded files (default ./NAME-BF16)")
	c.Flags().BoolVar(&f.force, "force", false,
		"overwrite files with the original's names, and allow other .safetensors files")
	return c
}

func runDecode(ctx context.Context, u *ui, f *decodeFlags, name string) error {
	report, err := pipeline.Decode(ctx, name, pipeline.DecodeOptions{Means: f.means(u),
		Recipe: f.recipe, Against: f.against, Folder: f.out, Force: f.force})
	if err != nil {
		return err
	}
	u.result(report, report.Folder, func(w io.Writer) { printDecodeReport(w, report) })
	return nil
}

func printDecodeReport(w io.Writer, r *pipeline.DecodeReport) {
	printf(w, "%s with %s in %s\n", human.Count(r.Files, "file"), human.Bytes(r.Bytes), r.Folder)
	if r.Index != "" {
		printf(w, "made again from the headers, so its bytes may differ: %s\n", r.Index)
	}
	if len(r.NotRestored) > 0 {
		printf(w, "not restored, and not in the DF11 model either: %s\n", human.List(r.NotRestored))
	}
	if r.Consulted {
		fmt.Fprintln(w, "all hashes match the original")
		return
	}
	fmt.Fprintln(w, "all hashes match the manifest (add --against to check the original itself)")
}
