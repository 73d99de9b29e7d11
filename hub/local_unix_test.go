//go:build unix

package hub

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTwelveFileDescriptors: a process that may open twelve files, and wants
// sixteen connections, says so at once. It runs in a process of its own.
func TestTwelveFileDescriptors(t *testing.T) {
	if endpoint := os.Getenv("DF11_TEST_FEW_FILES"); endpoint != "" {
		readWithFewFiles(t, endpoint)
		return
	}
	h := &edgeHub{size: 16 << 20, rate: steady(1)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done() // so that no connection becomes free
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwelveFileDescriptors$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), "DF11_TEST_FEW_FILES="+srv.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func readWithFewFiles(t *testing.T, endpoint string) {
	limit := syscall.Rlimit{Cur: 12, Max: 12}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skip("this system does not take the limit: ", err)
	}
	c, err := New(Options{Endpoint: endpoint, RangeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	h := &edgeHub{size: 16 << 20}
	start, failed := time.Now(), make(chan error, 16)
	for i := range int64(16) {
		go func() {
			_, err := c.ReadRange(t.Context(), h.ref(), i<<20, 1<<20)
			failed <- err
		}()
	}
	err = <-failed
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(Hint(err), "ulimit -n") {
		t.Errorf("%v; %s", err, Hint(err))
	}
	if d := time.Since(start); d > 20*time.Second { // at once, whatever this machine is busy with
		t.Errorf("after %v", d)
	}
}
