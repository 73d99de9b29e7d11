package hub

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// linkHub is a hub with a repo a/b. Its links to upload parts of 1000 bytes live for a while by the
// bubble's clock.
func linkHub(t *testing.T, lifetime time.Duration) *hubtest.Server {
	t.Helper()
	h := hubtest.Start(t, hubtest.InMemory("https://hub.test", "https://s3.test"), hubtest.WithMultipart(1, 1000))
	h.AddRepo("a/b", nil)
	h.Inject(hubtest.Fault{Host: hubtest.HostCDN, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		made, _ := time.Parse("20060102T150405Z", x.Request.URL.Query().Get("X-Amz-Date"))
		if time.Since(made) < lifetime {
			x.Next(x.ResponseWriter)
			return
		}
		hubtest.StorageError(403, "AccessDenied", "Request has expired")(x)
	}})
	return h
}

// nBatches counts the questions where to upload.
func nBatches(h *hubtest.Server) int { return h.Count("POST", "*.git/info/lfs/objects/batch") }

// uploadAll sends files of n bytes each at once, over a network with 1000 bytes per second.
func uploadAll(t *testing.T, h *hubtest.Server, nFiles, n int) (errs []error) {
	t.Helper()
	c, _ := testClient(t, h, realTime, func(o *Options) { o.LimitRate, o.RangeBytes, o.BufferBytes = 1000, 1<<20, 4<<20 })
	errs = make([]error, nFiles)
	var group sync.WaitGroup
	for i := range errs {
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		group.Go(func() {
			b := Blob{Path: fmt.Sprintf("%d.bin", i), Size: int64(n), SHA256: world.Sum(data), Reader: bytes.NewReader(data)}
			op, err := first(c.Upload(t.Context(), "a/b", "main", b))
			if errs[i] = err; err == nil && op.SHA256 != b.SHA256 {
				t.Errorf("%+v", op)
			}
		})
	}
	group.Wait()
	return errs
}

// TestFilesArriveOverALineTooThinToShare checks files of 40 s each with links for a minute.
// Together none finishes in time. After the first refusal they go one by one, and all arrive.
func TestFilesArriveOverALineTooThinToShare(t *testing.T) {
	for _, n := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			h := linkHub(t, time.Minute)
			start := time.Now()
			for i, err := range uploadAll(t, h, n, 40_000) {
				if err != nil {
					t.Errorf("file %d: %v", i, err)
				}
			}
			if took, most := time.Since(start), time.Duration(n+3)*40*time.Second; nBatches(h) > 2*n || took > most {
				t.Errorf("%d files: %d batch calls, %v", n, nBatches(h), took)
			}
		})
	}
}

// TestAFileThatCannotBeDoneInTimeEnds checks a single file that's too slow for its links. The hint
// says so.
func TestAFileThatCannotBeDoneInTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := linkHub(t, time.Minute)
		err := uploadAll(t, h, 1, 200_000)[0]
		if err == nil || !strings.Contains(Hint(err), "a faster network") || nBatches(h) != maxRounds {
			t.Errorf("%d batch calls, %v; %s", nBatches(h), err, Hint(err))
		}
	})
}
