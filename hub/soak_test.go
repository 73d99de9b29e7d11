package hub

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestStreamSoak reads a file over a hub that fails every sixth answer in some way. It prints the
// seed on a failure. Only the right bytes may arrive.
func TestStreamSoak(t *testing.T) {
	for seed := range uint64(120) {
		h := newFileHub(t, 20_000)
		rnd := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		h.fault = func(_ int, r *http.Request, good *http.Response) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(6) > 0 {
				return good, nil
			}
			return anyFault(rnd, h, r, good)
		}
		c, _ := testClient(t, h, smallRanges)
		if err := streamAll(t, c, h); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if !allFree(c) {
			t.Errorf("seed %d: buffers or connections are not given back", seed)
		}
	}
}

func anyFault(rnd *rand.Rand, h *fileHub, r *http.Request, good *http.Response) (*http.Response, error) {
	switch rnd.IntN(9) {
	case 0:
		return nil, syscall.ECONNRESET
	case 1:
		return cutBody(good, rnd.Int64N(1000), syscall.ECONNRESET), nil
	case 2:
		return cutBody(good, rnd.Int64N(1000), io.EOF), nil
	case 3:
		return reply(r, []int{500, 502, 503, 504}[rnd.IntN(4)], ""), nil
	case 4:
		return reply(r, 429, "", "Retry-After: 3"), nil
	case 5:
		return reply(r, 403, ""), nil
	case 6:
		return reply(r, 200, string(h.data)), nil
	case 7:
		return reply(r, 206, strings.Repeat("x", 1000), "Content-Range: bytes 1-1000/20000"), nil
	}
	good.Header.Set("Content-Encoding", "gzip")
	return good, nil
}
