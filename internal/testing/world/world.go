// Package world is what the tests of several packages share: files on disk, how deep random tests
// go, and small checkpoints made tensor by tensor. Hubs and models with real shapes are in package
// hubtest, golden vectors in package golden. A helper that the tests of two packages need belongs
// here. A helper that knows what is being tested stays with its test.
package world

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// Must ends the test if err isn't nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Got returns a function that returns v, or ends the test if err isn't nil.
func Got[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Root opens a folder until the test ends.
func Root(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	Must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// Read returns the bytes of a file.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	Must(t, err)
	return b
}

// Pixels returns the pixels of a PNG, row by row, as [image.NRGBA] has them.
func Pixels(t testing.TB, file []byte) []byte {
	t.Helper()
	img := Got(png.Decode(bytes.NewReader(file)))(t)
	pixels := image.NewNRGBA(img.Bounds())
	draw.Draw(pixels, pixels.Rect, img, img.Bounds().Min, draw.Src)
	return pixels.Pix
}

// Write writes a file and creates the folders above it.
func Write[T ~string | ~[]byte](t testing.TB, file string, content T) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(file), 0o777))
	Must(t, os.WriteFile(file, []byte(content), 0o666))
}

// WriteAll writes files into a folder. Their names have slashes.
func WriteAll(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		Write(t, filepath.Join(dir, filepath.FromSlash(name)), b)
	}
}

// ReadAll returns all regular files below a folder, by their names with slashes.
func ReadAll(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	Must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, p)
			all[filepath.ToSlash(name)] = Read(t, p)
		}
		return err
	}))
	return all
}

// Sum returns the SHA-256 of some bytes, in hex.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// AsStreamed returns a manifest in which every source file was streamed. After a kill, a run
// rebuilds the files that it hasn't read in full; nothing else in the manifest differs.
func AsStreamed(manifest []byte) []byte {
	return bytes.ReplaceAll(manifest, []byte(`"integrity": "proof"`), []byte(`"integrity": "streamed"`))
}

// Deep reports whether DF11_DEEP asks tests for every case instead of a sample.
func Deep() bool { return os.Getenv("DF11_DEEP") != "" }

// Stride returns the distance between the cases of a test that tries every n-th case: n, or 1 if
// Deep.
func Stride(n int) int {
	if Deep() {
		return 1
	}
	return n
}

// Seeds returns the seeds of a random test: few, or many if Deep. They are the same every time, and
// the test prints them. With DF11_SEED it returns only that one.
func Seeds(t testing.TB, few, many int) (seeds []uint64) {
	t.Helper()
	first, n := uint64(1), few
	if Deep() {
		n = many
	}
	if s := os.Getenv("DF11_SEED"); s != "" {
		_, err := fmt.Sscan(s, &first)
		Must(t, err)
		n = 1
	}
	for i := range n {
		seeds = append(seeds, first+uint64(i))
	}
	t.Logf("seeds %d; DF11_SEED repeats one", seeds)
	return seeds
}

// A Runner is a *testing.M.
type Runner interface{ Run() int }

// Quick returns a Runner for tests that write and sync thousands of files and have small heaps.
// Temporary files are in memory if the system supports that, and the garbage collector runs rarely.
func Quick(m Runner) Runner { return quick{m} }

type quick struct{ Runner }

func (q quick) Run() int {
	debug.SetGCPercent(200)
	dir, err := os.MkdirTemp("/dev/shm", "df11-test-")
	if err != nil {
		return q.Runner.Run()
	}
	defer os.RemoveAll(dir)
	_ = os.Setenv("TMPDIR", dir)
	return q.Runner.Run()
}
