package hub

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestTheLineDecidesHowManyFilesGo checks that large files stay few, and that small ones become as
// many as it takes to fill the line in spite of their questions.
func TestTheLineDecidesHowManyFilesGo(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    int // at 100,000 bytes per second
		latency time.Duration
		least   float64 // of the line's speed
		most    int64   // files at once; files of one size may all end at once
	}{
		{"large, near", 1_000_000, 0, 0.99, 2 * firstTurns},
		{"large, far", 1_000_000, 200 * time.Millisecond, 0.97, 2 * firstTurns},
		{"small, far", 10_000, 200 * time.Millisecond, 0.85, 16},
	} {
		synctest.Test(t, func(t *testing.T) {
			const speed, total = 100_000, 6_000_000
			h := hubtest.Start(t, hubtest.InMemory("https://hub.test", "https://s3.test"), hubtest.WithLFSThreshold(1),
				hubtest.WithLinkSpeed(0, speed), hubtest.WithLatency(tt.latency))
			h.AddRepo("a/b", nil)
			c, _ := testClient(t, h, realTime)
			start := time.Now()
			var group sync.WaitGroup
			places := make(chan struct{}, 40)
			for i := range total / tt.size {
				data := append(bytes.Repeat([]byte("x"), tt.size-8), fmt.Sprintf("%8d", i)...)
				places <- struct{}{}
				group.Go(func() {
					defer func() { <-places }()
					_, err := c.Upload(t.Context(), "a/b", "main", Blob{Path: fmt.Sprint(i, ".safetensors"), Size: int64(tt.size), SHA256: world.Sum(data), Reader: bytes.NewReader(data)})
					if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			share := total / time.Since(start).Seconds() / speed
			if share < tt.least || c.turns.now > tt.most {
				t.Errorf("%s: %.2f of the line, %d files at once", tt.name, share, c.turns.now)
			}
		})
	}
}
