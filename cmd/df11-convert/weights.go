//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/verify"
)

// weightsCommand is for programs, such as the Python package df11, which decodes with it on a
// machine without a GPU.
func weightsCommand(u *ui) *cobra.Command {
	return withArgument(&cobra.Command{
		Use:   "weights FILE",
		Short: "Write the decoded weights of a .safetensors file to stdout",
		Long: `weights decodes every compressed module of a local .safetensors file and writes
its weights to standard output: BF16, little-endian, module after module in the
order of their names, and nothing else.`,
		Hidden: true,
	}, func(ctx context.Context, arg string) error { return writeWeights(ctx, u.out.to, arg) })
}

// writeWeights writes the weights of all units of a file to w.
func writeWeights(ctx context.Context, w io.Writer, name string) error {
	f, err := disk.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, err := safetensors.ReadHeader(f, info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for _, path := range unitPaths(h) {
		unit, err := openUnit(f, h, path)
		if err == nil {
			err = unit.WriteRange(ctx, w, 0, unit.NElems(), runtime.GOMAXPROCS(0))
		}
		if err != nil {
			return fmt.Errorf("decode %s of %s: %w", path, name, err)
		}
	}
	return nil
}

// unitPaths returns the paths of a file's units, sorted.
func unitPaths(h *safetensors.Header) (paths []string) {
	for _, t := range h.Tensors {
		if path, ok := strings.CutSuffix(t.Name, ".encoded_exponent"); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// openUnit opens a unit of a file. An array that the file lacks counts as empty, which
// [verify.Open] refuses except for split_positions.
func openUnit(f io.ReaderAt, h *safetensors.Header, path string) (*verify.Unit, error) {
	return verify.Open(verify.ArraysAt(func(array string) *io.SectionReader {
		t, _ := h.Lookup(path + "." + array)
		return io.NewSectionReader(f, h.DataStart()+t.Begin, t.NBytes())
	}), nil)
}
