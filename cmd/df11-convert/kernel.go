//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// Names of the kernel's file: as the official loader and the ComfyUI nodes open it, and what is
// added to that of the file that ours replaces.
const (
	kernelFile     = "decode.ptx"
	officialKernel = ".official"
)

func kernelCommand(u *ui) *cobra.Command {
	var install, uninstall bool
	c := withArgument(&cobra.Command{
		Use:   "kernel FILE",
		Short: "Write our GPU kernel as the file that other loaders load",
		Long: `The official loader and the DFloat11 nodes of ComfyUI load one GPU kernel, from
dfloat11/decode.ptx. kernel writes ours: the same arguments, the same bits, and
fewer instructions. It needs compute capability 7.0, but not CUDA 12.2.

--install replaces the decode.ptx that you name, or the only one in a folder,
and keeps it as decode.ptx.official. --uninstall puts it back.`,
		Example: `  df11-convert kernel ./decode.ptx
  df11-convert kernel --install ~/venv     # the Python environment of dfloat11
  df11-convert kernel --uninstall ~/venv`,
	}, func(_ context.Context, arg string) error {
		switch {
		case install && uninstall:
			return usagef("give --install or --uninstall, not both")
		case install:
			return u.installKernel(arg)
		case uninstall:
			return u.uninstallKernel(arg)
		}
		return u.writeKernel(arg)
	})
	c.Flags().BoolVar(&install, "install", false, "replace the decode.ptx in FILE, a file or a folder, and keep it")
	c.Flags().BoolVar(&uninstall, "uninstall", false, "put back what --install replaced")
	return c
}

// maxKernel bounds a file that may be a kernel, in bytes.
const maxKernel = 16 << 20

// kernelResult is what kernel prints with --json.
type kernelResult struct {
	File string `json:"file"`
	Kept string `json:"kept,omitempty"` // what it replaces
}

// writeKernel writes the kernel to a new file.
func (u *ui) writeKernel(name string) error {
	if old, err := disk.Read(name, maxKernel); err == nil && string(old) != kernel.PTX() {
		return hint.On(fmt.Errorf("%s is there already", name), hint.KernelFile)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.WriteFile(name, []byte(kernel.PTX()), 0o666); err != nil {
		return err
	}
	u.result(kernelResult{File: name}, name, func(w io.Writer) { printf(w, "wrote %s\n", name) })
	return nil
}

// installKernel replaces another decode.ptx, and keeps it. A new file takes its place, so that
// other links to the old one, such as those of uv, still lead to it.
func (u *ui) installKernel(at string) error {
	name, err := findKernel(at, "to replace", func(name string) bool { return !isOurKernel(name) })
	if err != nil {
		return err
	}
	old, err := disk.Read(name, maxKernel)
	switch {
	case err != nil:
		return err
	case isOurKernel(name):
		return fmt.Errorf("%s is our kernel already", name)
	case !bytes.Contains(old, []byte(".entry decode(")):
		return fmt.Errorf("%s has no function decode, so it isn't DFloat11's kernel", name)
	}
	kept := name + officialKernel
	switch there, err := disk.Read(kept, maxKernel); {
	case errors.Is(err, fs.ErrNotExist):
		if err := disk.WriteFile(kept, old, 0o666); err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Equal(there, old):
		return hint.On(fmt.Errorf("%s is there already, and isn't what %s holds now", kept, name),
			hint.KernelGone.With("file", kept))
	}
	if err := disk.WriteFile(name, []byte(kernel.PTX()), 0o666); err != nil {
		return err
	}
	u.result(kernelResult{name, kept}, name, func(w io.Writer) {
		printf(w, "replaced %s\nkept as  %s\nto undo: df11-convert kernel --uninstall %s\n", name, kept, human.ShellWord(at))
	})
	return nil
}

// uninstallKernel puts back the file that installKernel replaced.
func (u *ui) uninstallKernel(at string) error {
	name, err := findKernel(at, "that --install has replaced", func(name string) bool {
		_, err := os.Stat(name + officialKernel)
		return err == nil
	})
	if err != nil {
		return err
	}
	kept := name + officialKernel
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		return hint.On(fmt.Errorf("%s isn't one that --install has replaced", name), hint.NoKernel)
	}
	if !isOurKernel(name) {
		return hint.On(fmt.Errorf("%s isn't our kernel any more", name), hint.KernelGone.With("file", kept))
	}
	if err := os.Rename(kept, name); err != nil {
		return fmt.Errorf("put back %s: %w", name, err)
	}
	u.result(kernelResult{File: name}, name, func(w io.Writer) { printf(w, "put back %s\n", name) })
	return nil
}

// isOurKernel reports whether a file is a kernel of ours, of any version.
func isOurKernel(name string) bool {
	b, err := disk.Read(name, maxKernel)
	return err == nil && bytes.HasPrefix(b, []byte("// decode.cu sha256 "))
}

// findKernel returns the file itself, or the only decode.ptx of a kind in a folder. what says which
// kind that is.
func findKernel(at, what string, is func(name string) bool) (string, error) {
	st, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usage.Of(err)
	case err != nil || !st.IsDir():
		return at, err
	}
	root, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", err
	}
	var found []string
	_ = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == kernelFile && !e.IsDir() && is(name) {
			found = append(found, name)
		}
		return nil // no loader reads what we can't
	})
	switch {
	case len(found) == 0:
		return "", hint.On(fmt.Errorf("%s holds no %s %s", at, kernelFile, what), hint.NoKernel)
	case len(found) > 1:
		return "", hint.On(fmt.Errorf("%s holds several: %s", at, strings.Join(found, ", ")), hint.Kernels)
	}
	return found[0], nil
}
