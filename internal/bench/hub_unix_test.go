//go:build unix

package bench_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/model"
)

// hubBytes is the size of the file that travels.
const hubBytes = 1 << 30

// BenchmarkHub measures what a Hub file costs this process, in core-seconds for each GB: the hub is a process of its own, at
// the other end of the loopback device. "http" is the floor: net/http moves the same bytes to and from nowhere, 8 ranges at
// once. "xhash" compares with one goroutine that hashes and does nothing else, just before each measured run.
func BenchmarkHub(b *testing.B) {
	h := startHub(b)
	for _, s := range []struct {
		name string
		run  func(*testing.B) error
	}{
		{"hash alone", func(*testing.B) error { return hashAlone() }},
		{"down/http", h.get},
		{"down/read", func(b *testing.B) error { return h.read(b, io.Discard) }},
		{"down/one goroutine reads and hashes", func(b *testing.B) error { return h.read(b, sha256.New()) }},
		{"down/read and hash", h.sum},
		{"up/upload", h.upload},
	} {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(hubBytes)
			var cpu, wall, hash time.Duration
			for b.Loop() {
				b.StopTimer()
				start := time.Now()
				if err := hashAlone(); err != nil {
					b.Fatal(err)
				}
				hash += time.Since(start)
				b.StartTimer()
				start, before := time.Now(), cpuTime(b)
				if err := s.run(b); err != nil {
					b.Fatal(err)
				}
				wall, cpu = wall+time.Since(start), cpu+cpuTime(b)-before
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N)/hubBytes*1e9, "core-s/GB")
			b.ReportMetric(hash.Seconds()/wall.Seconds(), "xhash")
		})
	}
}

// cpuTime is what this process has used of all cores, in the kernel too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// hashAlone hashes as many bytes as the file has, block by block, without reading them from anywhere.
func hashAlone() error {
	h, block := sha256.New(), make([]byte, 1<<20)
	for range hubBytes / len(block) {
		h.Write(block)
	}
	return nil
}

// hubProcess is a hub in a process of its own that serves one file of zeros.
type hubProcess struct {
	client *hub.Client
	ref    hub.FileRef
	link   string // of the file
	file   *os.File
	nRuns  int
}

func startHub(b *testing.B) *hubProcess {
	b.Helper()
	dir := b.TempDir()
	program := filepath.Join(dir, "hubd")
	if out, err := exec.Command("go", "build", "-o", program, "../hubtest/hubd").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	repo := filepath.Join(dir, "data", "org", "model")
	if err := os.MkdirAll(repo, 0o777); err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(repo, "model.safetensors"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	if err := file.Truncate(hubBytes); err != nil {
		b.Fatal(err)
	}
	h := &hubProcess{file: file}
	endpoint := serve(b, program, filepath.Join(dir, "data"))
	if h.client, err = hub.New(hub.Options{Endpoint: endpoint, Token: "token"}); err != nil {
		b.Fatal(err)
	}
	info, err := h.client.Info(b.Context(), "org/model", "main")
	if err != nil {
		b.Fatal(err)
	}
	h.ref, _ = info.File("model.safetensors")
	h.link = endpoint + "/org/model/resolve/main/model.safetensors"
	return h
}

// serve starts the program and gives the address that it prints.
func serve(b *testing.B, program, data string) string {
	b.Helper()
	c := exec.Command(program, "-data", data, "-drop-uploads")
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Process.Signal(os.Interrupt); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	endpoint, ok := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if err != nil || !ok {
		b.Fatalf("hubd said %q, %v", line, err)
	}
	return endpoint
}

// get is the floor of every download: 8 ranges at once, each read into memory of its own, of which nothing is made.
func (h *hubProcess) get(b *testing.B) error {
	const nConns, rangeBytes = 8, 16 << 20
	g, ctx := errgroup.WithContext(b.Context())
	for i := range int64(nConns) {
		g.Go(func() error {
			buf := make([]byte, rangeBytes)
			for off := i * rangeBytes; off < hubBytes; off += nConns * rangeBytes {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.link, nil)
				if err != nil {
					return err
				}
				req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+rangeBytes-1))
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				_, err = io.ReadFull(resp.Body, buf)
				resp.Body.Close()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// read streams the file to w.
func (h *hubProcess) read(b *testing.B, w io.Writer) error {
	r, err := h.client.Stream(b.Context(), h.ref, 0, hubBytes)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 1<<20))
	return err
}

// sum reads and hashes the file as a conversion does.
func (h *hubProcess) sum(b *testing.B) error {
	_, err := fetch.Sum(b.Context(), remote{client: h.client, ref: h.ref}, 0, h.ref.Path, hubBytes)
	return err
}

// remote is a source of one file on a hub.
type remote struct {
	model.Source
	client *hub.Client
	ref    hub.FileRef
}

func (r remote) Stream(ctx context.Context, _ int, off, end int64) (io.ReadCloser, error) {
	return r.client.Stream(ctx, r.ref, off, end)
}

// upload sends the file to a repo that has never seen it.
func (h *hubProcess) upload(b *testing.B) error {
	h.nRuns++
	repo := fmt.Sprintf("tester/out-%d", h.nRuns)
	if _, err := h.client.CreateRepo(b.Context(), repo, nil); err != nil {
		return err
	}
	_, err := h.client.Upload(b.Context(), repo, "main", hub.Blob{Path: h.ref.Path, Size: hubBytes, SHA256: h.ref.SHA256, Reader: h.file})
	return err
}
