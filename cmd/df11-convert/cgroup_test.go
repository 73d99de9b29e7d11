package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroupMemory: the smallest limit from the process's own group up to the root counts, in both versions of the
// interface; "max", the huge number of version 1, and groups that are not there are none.
func TestCgroupMemory(t *testing.T) {
	const job = "/slurm/job_7/step_0"
	for name, tc := range map[string]struct {
		self  string
		files map[string]string
		want  int64
	}{
		"nothing there":       {"", nil, 0},
		"no limit":            {"0::/\n", map[string]string{"memory.max": "max\n"}, 0},
		"at the root":         {"0::/\n", map[string]string{"memory.max": "17179869184\n"}, 16 << 30},
		"without self":        {"", map[string]string{"memory.max": "1000\n"}, 1000},
		"own group":           {"0::" + job + "\n", map[string]string{"memory.max": "max\n", "slurm/job_7/step_0/memory.max": "500\n"}, 500},
		"group above":         {"0::" + job + "\n", map[string]string{"slurm/job_7/memory.max": "400\n", "slurm/job_7/step_0/memory.max": "max\n"}, 400},
		"the smallest":        {"0::" + job + "\n", map[string]string{"memory.max": "300\n", "slurm/job_7/memory.max": "400\n", "slurm/job_7/step_0/memory.max": "500\n"}, 300},
		"another group":       {"0::" + job + "\n", map[string]string{"slurm/job_8/memory.max": "1\n"}, 0},
		"path of the host":    {"0::/docker/abc\n", map[string]string{"memory.max": "200\n"}, 200},
		"version 1":           {"5:cpu,cpuacct:/x\n4:memory:" + job + "\n0::/x\n", map[string]string{"memory/slurm/job_7/memory.limit_in_bytes": "600\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, 600},
		"version 1, together": {"4:hugetlb,memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "700\n"}, 700},
		"version 1, without":  {"", map[string]string{"memory/memory.limit_in_bytes": "800\n"}, 800},
		"other controllers":   {"4:cpu:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "700\n"}, 0},
		"no number":           {"0::/\n", map[string]string{"memory.max": "x"}, 0},
		"outside":             {"0::/../../a\n", map[string]string{"a/memory.max": "900\n"}, 900},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			self, mount := filepath.Join(dir, "self"), filepath.Join(dir, "cgroup")
			if tc.self != "" {
				writeText(t, self, tc.self)
			}
			for p, text := range tc.files {
				writeText(t, filepath.Join(mount, p), text)
			}
			if got := cgroupMemory(self, mount); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
