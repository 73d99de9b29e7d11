package convert_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// BenchmarkOverlap converts a model over lines of known speed, from Hub to Hub, and reports the
// wall time as a multiple of what the slowest stage takes alone: the bytes of the slower direction
// at the speed of its line. Lines are slow enough that no machine is limited by its processor. The
// promise is a ratio of at most 1.1. What can't overlap is the fetch of the first unit and the
// upload of the last, so the model has many units, as large models do.
//
//	go test -run '^$' -bench Overlap -benchtime 1x ./internal/convert
func BenchmarkOverlap(b *testing.B) {
	for _, line := range []struct {
		name     string
		down, up int64 // bytes per second
	}{
		{"download", 9_000_000, 18_000_000},
		{"upload", 18_000_000, 6_000_000},
		{"balanced", 9_000_000, 6_000_000},
	} {
		b.Run(line.name, func(b *testing.B) {
			var wall, alone time.Duration
			for range b.N {
				w, a := overlap(b, line.down, line.up)
				wall, alone = wall+w, alone+a
			}
			ratio := wall.Seconds() / alone.Seconds()
			b.ReportMetric(ratio, "wall/slowest")
			b.ReportMetric(0, "ns/op") // it says nothing: the lines set the time
			if ratio > 1.1 {
				b.Errorf("%.2f s, but the slowest stage alone takes %.2f s", wall.Seconds(), alone.Seconds())
			}
		})
	}
}

// overlap runs one conversion. It returns its wall time, and that of the slower connection alone.
func overlap(b *testing.B, down, up int64) (wall, alone time.Duration) {
	b.Helper()
	m := hubtest.NewLlama(3, hubtest.ModelOptions{Hidden: 256, Layers: 96, Vocab: 2048, ShardBytes: 16 << 20})
	s := hubtest.New(hubtest.WithLinkSpeed(down, up), hubtest.WithDropUploads())
	defer s.Close()
	s.AddModel(sourceRepo, m)
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: testToken, TokenSource: "HF_TOKEN"}, RangeBytes: 256 << 10, BufferBytes: 2 << 20})
	shared.Must(b, err)
	src, known, p, err := openModel(b.Context(), c, sourceRepo, plan.Options{})
	shared.Must(b, err)
	start := time.Now()
	_, err = convert.Run(b.Context(), convert.Options{
		Source: src, Model: known, Plan: p, Push: &publish.Push{Hub: c, Repo: targetRepo},
		WorkDir: filepath.Join(b.TempDir(), "work"), Memory: budget.ForConversion(0, 2), Means: forward.Means{Workers: 2}, Version: "test",
	})
	shared.Must(b, err)
	wall = time.Since(start)
	sent := int64(0)
	for _, q := range s.Requests() {
		sent += q.Received
	}
	return wall, max(atSpeed(m.Size(), down), atSpeed(sent, up))
}

func atSpeed(nBytes, perSecond int64) time.Duration {
	return time.Duration(float64(nBytes) / float64(perSecond) * float64(time.Second))
}
