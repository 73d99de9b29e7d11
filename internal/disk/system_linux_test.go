package disk

import (
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// Commit syncs the folder once the file has its name. Otherwise a machine that loses power might
// lose a file that a journal names.
func TestNameIsForcedToDisk(t *testing.T) {
	dir := t.TempDir()
	f := create(t, filepath.Join(dir, "a"), 0)
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	must(t, err)
	defer syscall.Close(fd)
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_MOVED_TO|syscall.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	must(t, f.Commit(0))
	b := make([]byte, 4<<10)
	n, err := syscall.Read(fd, b)
	must(t, err)
	var seen []uint32
	for b = b[:n]; len(b) > 0; {
		e := (*syscall.InotifyEvent)(unsafe.Pointer(&b[0]))
		seen = append(seen, e.Mask)
		b = b[syscall.SizeofInotifyEvent+e.Len:]
	}
	if len(seen) != 2 || seen[0] != syscall.IN_MOVED_TO || seen[1] != syscall.IN_OPEN|syscall.IN_ISDIR {
		t.Errorf("events in the folder: %#x, want a file that gets its name, then the folder opened", seen)
	}
}

// Only a volume that Kubernetes makes for a pod, on disk, may be writable for everyone: one with a
// claim, a folder of the node, and a tmpfs, also one of a pod, have other users for all we know.
func TestVolumesOfPods(t *testing.T) {
	const pod = "/var/lib/kubelet/pods/1234/volumes/kubernetes.io~"
	for line, own := range map[string]bool{
		"700 600 8:1 " + pod + "empty-dir/work /work rw - ext4 /dev/sda1 rw":     true,
		"700 600 8:1 " + pod + "empty-dir/work/sub /work rw - ext4 /dev/sda1 rw": true,
		"700 600 8:1 " + pod + "empty-dir/work /work/sub rw - ext4 /dev/sda1 rw": false,
		"700 600 8:1 " + pod + "empty-dir/work /wor rw - ext4 /dev/sda1 rw":      false,
		"700 600 8:1 " + pod + "csi/pvc-1/mount /work rw - ext4 /dev/sda1 rw":    false,
		"700 600 8:1 /kubernetes.io~empty-dir /work rw - ext4 /dev/sda1 rw":      false,
		"700 600 8:1 / /work rw - ext4 " + pod + "empty-dir/work rw":             false,
		"700 600 0:99 / /work rw - tmpfs tmpfs rw":                               false,
		"700 600 8:1 /srv /work rw - ext4 /dev/sda1 rw":                          false,
		"700": false, "": false,
	} {
		if got := isPodVolume("/work", "600 1 0:1 / / rw - overlay overlay rw\n"+line+"\n"); got != own {
			t.Errorf("%s: %v", line, got)
		}
	}
}
