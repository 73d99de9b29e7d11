package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

func create(t *testing.T, path string, size int64) *File {
	t.Helper()
	f, err := CreateIn(world.Root(t, filepath.Dir(path)), filepath.Base(path), ".", 0o666, size)
	must(t, err)
	t.Cleanup(f.Cleanup)
	return f
}

// wantOnly checks that dir holds exactly the given names.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("directory holds %q, want %q", got, names)
	}
}

// A commit replaces an existing file. If no commit succeeds, the old file
// stays.
func TestAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("the file holds %q, %v, want %q", got, err, want)
		}
		wantOnly(t, dir, "a")
	}
	for _, text := range []string{"first", "second one", "", "old"} {
		must(t, WriteFile(path, []byte(text), 0o666))
		holds(text)
	}
	f := create(t, path, 100)
	_, err := f.WriteAt([]byte("new"), 0)
	must(t, err)
	if err := f.Commit(4); err == nil || !strings.Contains(err.Error(), "file has 3 bytes, want 4") {
		t.Errorf("wrong length: %v", err)
	}
	f.Cleanup()
	f.Cleanup()
	holds("old")
	if _, err := f.WriteAt([]byte("new"), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after cleanup: %v", err)
	}
	if err := WriteFile(filepath.Join(dir, "no", "a"), nil, 0o666); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

// diskFull is the system's error for a full disk.
var diskFull error = syscall.ENOSPC

func init() {
	if runtime.GOOS == "windows" {
		diskFull = syscall.Errno(112) // ERROR_DISK_FULL
	}
}

// faulty fails one operation of a real file.
type faulty struct {
	*os.File
	op  string
	err error
}

func (f faulty) fail(op string) error {
	if op == f.op {
		return f.err
	}
	return nil
}

func (f faulty) WriteAt(p []byte, _ int64) (int, error) { return len(p), f.fail("write") }
func (f faulty) ReadAt(p []byte, _ int64) (int, error)  { return len(p), f.fail("read") }
func (f faulty) Sync() error                            { return f.fail("sync") }
func (f faulty) Truncate(int64) error                   { return f.fail("truncate") }

func (f faulty) Close() error {
	if err := f.File.Close(); err != nil {
		return err
	}
	return f.fail("close")
}

// Every failure is reported with the operation and the final name, and no file appears.
func TestEveryFailureIsReported(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "temp", Err: diskFull}
	write := func(f *File) error {
		if _, err := f.WriteAt([]byte("1234"), 0); err != nil {
			return err
		}
		return f.Commit(0)
	}
	for _, tt := range []struct {
		op, wantOp string
		err, is    error
		do         func(f *File) error
	}{
		{"write", "write", full, diskFull, write},
		{"read", "read", syscall.EIO, syscall.EIO, func(f *File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err }},
		{"sync", "sync", full, diskFull, write},
		{"sync", "sync", syscall.EIO, syscall.EIO, write},
		{"truncate", "truncate", syscall.EIO, syscall.EIO, write},
		{"close", "close", full, diskFull, write},
		{"none", "rename", nil, nil, func(f *File) error { // over a folder that isn't empty
			if err := f.root.MkdirAll(filepath.Join(f.name, "b"), 0o755); err != nil {
				return err
			}
			defer f.root.RemoveAll(f.name)
			return f.Commit(0)
		}},
	} {
		dir := t.TempDir()
		f := create(t, filepath.Join(dir, "a"), 0)
		f.h = faulty{f.h.(*os.File), tt.op, tt.err}
		err := tt.do(f)
		var e *fs.PathError
		if !errors.As(err, &e) || e.Op != tt.wantOp || e.Path != filepath.Join(dir, "a") || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: got %v", tt.op, err)
		}
		if IsNoSpace(err) != errors.Is(err, diskFull) || strings.Contains(err.Error(), tempPrefix) {
			t.Errorf("%s: IsNoSpace or a name is wrong in %v", tt.op, err)
		}
		f.Cleanup()
		wantOnly(t, dir)
	}
}

func TestRemoveTemporary(t *testing.T) {
	dir := t.TempDir()
	f := create(t, filepath.Join(dir, "a"), 0)
	if err := f.h.Close(); err != nil { // as after a kill
		t.Fatal(err)
	}
	for _, name := range []string{".df11-", ".df11-x.tmp", "df11-x.tmp", "a.tmp"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(dir, ".df11-folder.tmp", "x"), 0o755))
	removeTemporary(world.Root(t, dir), 0)
	wantOnly(t, dir, ".df11-", ".df11-folder.tmp", "a.tmp", "df11-x.tmp")
}

// TestWriteFileAfterAKill checks that the next write removes what a killed one has left, and nothing that
// another one may still write, or that isn't ours.
func TestWriteFileAfterAKill(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{".df11-old.tmp": 2 * time.Hour, ".df11-new.tmp": time.Minute, "x.tmp": 2 * time.Hour} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-age)))
	}
	must(t, WriteFile(filepath.Join(dir, "page.html"), []byte("x"), 0o666))
	wantOnly(t, dir, ".df11-new.tmp", "page.html", "x.tmp")
}

// must ends the test if err isn't nil.
var must = world.Must
