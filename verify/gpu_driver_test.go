//go:build linux && !nogpu

package verify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// stubDriver is a stand-in for the driver's library, built from testdata/stub/stub.c. It also has a
// folder: tests write faults there and read which functions were called.
type stubDriver struct{ dir, library string }

var stubDir string // set once it exists; TestMain removes it

var buildStub = sync.OnceValues(func() (*stubDriver, error) {
	dir, err := os.MkdirTemp("", "df11-stub")
	if err != nil {
		return nil, err
	}
	stubDir = dir
	s := &stubDriver{dir, filepath.Join(dir, "libcuda.so.1")}
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-pthread", "-DDIR=\""+dir+"\"", "-o", s.library, "testdata/stub/stub.c").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return s, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if stubDir != "" {
		_ = os.RemoveAll(stubDir)
	}
	os.Exit(code)
}

// stub returns the stub with these faults and an empty log. At the end of the test, the log must
// show no misuse. Only one test at a time may use it.
func stub(t *testing.T, faults ...string) *stubDriver {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc for the stub driver:", err)
	}
	s, err := buildStub()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.dir, "faults"), []byte(strings.Join(faults, "\n")+"\n"), 0o600))
	_ = os.Remove(filepath.Join(s.dir, "log"))
	t.Cleanup(func() {
		if log := s.log(t); strings.Contains(log, "VIOLATION") {
			t.Error("the driver was misused:", log)
		}
	})
	return s
}

func (s *stubDriver) log(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func (s *stubDriver) options() GPUOptions {
	return GPUOptions{Mode: GPURequire, driver: s.library, slotSize: 512 << 10}
}

func (s *stubDriver) open(t *testing.T, opt GPUOptions) *GPU {
	t.Helper()
	g, err := OpenGPU(opt)
	must(t, err)
	return g
}
