package pagecache

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const size = 4 << 20

// TestDrop: pages that are on disk leave the cache, in the given range only, and the file keeps its bytes.
func TestDrop(t *testing.T) {
	f := diskFile(t)
	Drop(f, size/4, size/2)
	if head, middle := resident(t, f, 0, size/4), resident(t, f, size/4, size/2); head == 0 || middle != 0 {
		t.Errorf("%d pages are left before the range, %d in it", head, middle)
	}
	DropFile(f.Name())
	if n := resident(t, f, 0, size); n != 0 {
		t.Errorf("%d pages of the file are left", n)
	}
	got := make([]byte, size)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, content()) {
		t.Errorf("the file has changed: %v", err)
	}
}

// TestDropOther: what is no file, and a file that is not there, are left alone.
func TestDropOther(*testing.T) {
	Drop(bytes.NewReader(nil), 0, 1)
	DropFile("no such file")
}

func content() []byte { return bytes.Repeat([]byte("0123456789abcdef"), size/16) }

// diskFile is a file whose pages are on disk and in the cache.
func diskFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC || st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		t.Skip("NOT TESTED: this file system answers for another one, or has its files in the cache alone")
	}
	for piece := range slices.Chunk(content(), 4<<10) { // the pages of one large write may hang together
		if _, err := f.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return f
}

// resident counts the pages of a range that are in the cache.
func resident(t *testing.T, f *os.File, off, n int64) int {
	t.Helper()
	b, err := unix.Mmap(int(f.Fd()), off, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	vec := make([]byte, int(n)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	count := 0
	for _, v := range vec {
		count += int(v & 1)
	}
	return count
}
