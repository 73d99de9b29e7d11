//go:build linux && !nogpu

package cuda

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compile makes a library from a C source.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc for the stub driver:", err)
	}
	library := filepath.Join(t.TempDir(), "libcuda.so.1")
	args := append([]string{"-shared", "-fPIC", "-pthread", "-o", library, source}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return library
}

// openStub opens the first device of the stub driver with these faults.
func openStub(t *testing.T, faults ...string) (*Device, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "faults"), []byte(strings.Join(faults, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(compile(t, "../../testdata/stub/stub.c", "-DDIR=\""+dir+"\""))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	return dev, filepath.Join(dir, "log")
}

// roundTrip sends bytes to the device and half of them back, then as many sevens.
func roundTrip(c *Context, send, back Pinned) error {
	n := len(send)
	s, err := c.NewStream()
	if err != nil {
		return err
	}
	p, err := c.Alloc(n)
	if err != nil {
		return err
	}
	e, err := c.NewEvent()
	if err != nil {
		return err
	}
	err = errors.Join(
		c.CopyToDevice(p, send, s),
		c.CopyToHost(back[:n/2], p, s),
		c.Fill(p, 7, n, s),
		c.CopyToHost(back[n/2:], p, s),
		c.Record(e, s),
	)
	for reached := false; err == nil && !reached; {
		reached, err = c.Reached(e)
	}
	return err
}

func TestDevice(t *testing.T) {
	dev, log := openStub(t)
	want := Info{Name: "Stub 0", Major: 7, Minor: 5, Processors: 2}
	if got := dev.Info(); got != want {
		t.Errorf("got %+v", got)
	}
	err := dev.Do(func(c *Context) error {
		send, err := c.AllocPinned(1000)
		if err != nil {
			return err
		}
		back, err := c.AllocPinned(1000)
		if err != nil {
			return err
		}
		for i := range send {
			send[i], back[i] = byte(i), 0
		}
		err = roundTrip(c, send, back)
		if want := append(send[:500:500], bytes.Repeat([]byte{7}, 500)...); !bytes.Equal(back, want) {
			t.Error("other bytes came back")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	dev.Close()
	b, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(b), "VIOLATION") || !strings.Contains(string(b), "cuDevicePrimaryCtxRelease") {
		t.Errorf("%v, log:\n%s", err, b)
	}
}

func TestErrors(t *testing.T) {
	dev, _ := openStub(t)
	defer dev.Close()
	_ = dev.Do(func(c *Context) error {
		_, err := c.Load("no version")
		var e *Error
		if !errors.As(err, &e) || e.Code != 218 || !strings.HasPrefix(err.Error(), "cuModuleLoadData: error 218") {
			t.Errorf("a text that is no PTX: %v", err)
		}
		if _, err := c.Load(".version 6.0", "dekode"); err == nil || !strings.HasPrefix(err.Error(), "cuModuleGetFunction: ") {
			t.Errorf("no such entry: %v", err)
		}
		f, err := c.Load(".version 6.0", "decode")
		if err != nil {
			t.Error(err)
			return nil
		}
		if err := c.Launch(f[0], Launch{Blocks: 0, Threads: 512}); err == nil || !strings.HasPrefix(err.Error(), "cuLaunchKernel: ") {
			t.Errorf("no blocks: %v", err)
		}
		return nil
	})
}

func TestNoDriver(t *testing.T) {
	if _, err := Open("/no/libcuda.so.1"); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

// An old driver lacks newer functions; the error names the missing one.
func TestOldDriver(t *testing.T) {
	source := filepath.Join(t.TempDir(), "old.c")
	if err := os.WriteFile(source, []byte("int cuInit(unsigned flags) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(compile(t, source))
	if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "too old") || !strings.Contains(err.Error(), "cuGetErrorName") {
		t.Errorf("got %v", err)
	}
}
