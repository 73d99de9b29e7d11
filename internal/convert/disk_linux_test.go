package convert_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/disk"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestDiskFull checks that on a disk that is too small, the run ends with an error that says so,
// leaves no half-written file under an output's name, and continues once there's space. If the test
// may not mount a disk, the disk "fills up" in the stage that compares. The model has more outputs
// than can be in progress then.
func TestDiskFull(t *testing.T) {
	want := reference(t, deep())
	w, tight := newWorld(t, deep()), t.TempDir()
	// more than there is
	w.change = append(w.change, func(o *convert.Options) { o.Disk = 1 << 30 })
	full, room := smallDisk(t, w, tight)
	_, err := w.convert(t.Context(), t, filepath.Join(tight, "work"), full)
	if err == nil || !disk.IsNoSpace(err) {
		t.Fatalf("on a full disk: %v", err)
	}
	w.unfinished(t)
	noGoroutines(t)
	err = filepath.WalkDir(tight, func(p string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(p, ".tmp") {
			t.Errorf("%s is left behind", p)
		}
		if st, statErr := os.Stat(p); statErr == nil && strings.HasSuffix(p, ".safetensors") && st.Size() != want[filepath.Base(p)].Size {
			t.Errorf("%s is not complete", p)
		}
		return err
	})
	shared.Must(t, err)
	room()
	if _, err := w.convert(t.Context(), t, filepath.Join(tight, "work")); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, w.target(), want)
}

// smallDisk makes dir a file system of 8 MiB; full fills it up once the first output is there, room
// empties it again. Where no disk may be mounted, full makes the run meet the same error.
func smallDisk(t *testing.T, w *world, dir string) (full func(*convert.Options), room func()) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Logf("no small disk can be mounted (%v), the error is made in the stage that compares", err)
		full := &os.PathError{Op: "write", Path: "spool", Err: errors.Join(syscall.ENOSPC)}
		return func(o *convert.Options) { o.GPU = answers(full) }, func() {}
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	w.log.hook = func(string) { fill(t, ballast) }
	return func(*convert.Options) {}, func() {
		w.log.hook = nil
		shared.Must(t, os.Remove(ballast))
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return // full already
	}
	defer f.Close()
	for _, n := range []int{1 << 20, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, n))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

// TestLittleFreeDiskIsEnough checks that a push ends well on a disk that holds the conversion, though
// less is free than a run likes to leave to others.
func TestLittleFreeDiskIsEnough(t *testing.T) {
	for _, size := range []string{"4m", "24m", "200m"} {
		w, tight := newWorld(t, small()), t.TempDir()
		if err := syscall.Mount("tmpfs", tight, "tmpfs", 0, "size="+size); err != nil {
			t.Skipf("NOT TESTED: no small disk can be mounted: %v", err)
		}
		_, err := w.convert(t.Context(), t, filepath.Join(tight, "work"))
		if unmount := syscall.Unmount(tight, 0); err != nil || unmount != nil {
			t.Errorf("%s: %v, %v", size, err, unmount)
		}
		sameFiles(t, w.target(), reference(t, small()))
	}
}
