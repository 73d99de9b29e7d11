package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupMemory is the smallest memory limit, in bytes, of the control groups that this process is in; 0 if there is none.
// A limit holds for all groups below, and batch systems set theirs on a group that is not the root: so every level counts,
// from the process's own group, which the file self tells, up to the root of the mount. Where a container sees the mount
// of its own group as the root and the path of the host, the levels that are not there are passed over.
// (Linux: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.)
func cgroupMemory(self, mount string) (limit int64) {
	text, err := os.ReadFile(self)
	if err != nil {
		text = []byte("0::/\n0:memory:/\n")
	}
	for line := range strings.Lines(string(text)) {
		group := strings.SplitN(strings.TrimSpace(line), ":", 3) // id, controllers, path
		if len(group) != 3 {
			continue
		}
		dir, file := mount, "memory.max"
		if group[1] != "" {
			dir, file = filepath.Join(mount, "memory"), "memory.limit_in_bytes"
		}
		if group[1] != "" && !slices.Contains(strings.Split(group[1], ","), "memory") {
			continue
		}
		for at := path.Clean("/" + group[2]); ; at = path.Dir(at) {
			if n := memoryLimit(filepath.Join(dir, filepath.FromSlash(at), file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if at == "/" {
				break
			}
		}
	}
	return limit
}

// memoryLimit reads one limit; 0 is none. Version 1 writes a huge number where there is none, version 2 a word.
func memoryLimit(name string) int64 {
	const unlimited = 1 << 60
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n >= unlimited {
		return 0
	}
	return max(n, 0)
}
