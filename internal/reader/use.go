package reader

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
)

// A Use is what programs may do with a file. A lower Use matters more.
type Use int

// Uses.
const (
	Runs    Use = iota // code, and formats that can run code when they're read
	Opens              // weights, configs, tokenizers, templates, and unknown files
	Ignores            // notices, pictures, texts
)

// Extensions of files, with a dot before and after each.
const (
	code    = ".py.pyc.pyd.so.dll.dylib.sh.bat.ps1.js.jar.ipynb."
	pickles = ".bin.pt.pth.ckpt.pkl.pickle.joblib." // Python unpickles them
	// other weights that can hold code
	archives     = ".npy.npz.h5.hdf5.keras.nemo.mar.tar.zip.distcp.llamafile.exe.engine.pb."
	otherWeights = ".safetensors.gguf.ggml.onnx.onnx_data.msgpack.tflite.ot.mlmodel.mlpackage" +
		".weights.pdparams."
)

// isOf reports whether a file has one of the extensions.
func isOf(extensions, name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext != "" && strings.Contains(extensions, ext+".")
}

// IsPickle reports whether Python unpickles a file, by its name. A pickle can run code.
func IsPickle(name string) bool { return isOf(pickles, name) }

// isWeights reports whether a file holds weights in any format, by its name.
func isWeights(base string) bool {
	low := strings.ToLower(base)
	return IsPickle(low) || isOf(archives+otherWeights, low) ||
		strings.HasPrefix(path.Ext(low), ".data-") || strings.Contains(low, ".onnx_data") ||
		strings.Contains(low, ".onnx.data")
}

// index matches the end of the name of an index of weights, with or without a variant.
var index = regexp.MustCompile(`\.index(\.\w+)?\.json$`)

// forPeople matches what no library reads: pictures, and texts other than those of tokenizers.
var forPeople = regexp.MustCompile(
	`(?i)\.(md|rst|pdf|png|jpe?g|gif|svg|webp|bmp|mp4|webm|csv|gitignore)$`)

// tokens matches the names of text files that libraries open: those of tokenizers, and what custom
// code requires.
var tokens = regexp.MustCompile(`(?i)vocab|merges|dict|bpe|token|words|spm|emoji|^requirements`)

// UseOf returns what programs may do with a file, by its path. Unknown files may be opened.
func UseOf(name string) Use {
	base := path.Base(name)
	isText := strings.EqualFold(path.Ext(base), ".txt") && !tokens.MatchString(base)
	switch {
	case isOf(code, base), IsPickle(base), isOf(archives, base):
		return Runs
	case IsNotice(base), forPeople.MatchString(base), isText:
		return Ignores
	}
	return Opens
}

// isHousekeeping reports whether a file belongs to Git, to a download cache, to macOS, or to an
// unfinished conversion, on any file system.
func isHousekeeping(p string) bool {
	return slices.ContainsFunc(strings.Split(names.Folded(p), "/"), func(part string) bool {
		return strings.HasPrefix(part, ".git") || strings.HasPrefix(part, names.Ours) ||
			IsAppleDouble(part) || part == ".cache" || part == ".ds_store"
	})
}

// IsAppleDouble reports whether a file holds what macOS keeps of another file on a foreign disk.
// It's never part of a model, whatever its name ends in.
func IsAppleDouble(name string) bool { return strings.HasPrefix(path.Base(name), "._") }
