package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// shardBytes deals the tensors of 126 layers to 191 files, as the published repo has them.
const shardBytes = 4_773_000_000

// repeatBytes is how much of the weights is really made; the rest repeats it. The number of weights
// is odd, so that every block of the encoder sees another part of them.
const repeatBytes = 2 * (16<<20 + 1)

// newModel has the shapes of the real model; scale divides all of them but the layers.
func newModel(layers, scale int, repeat int64) *hubtest.Model {
	return hubtest.NewLlama(405, hubtest.ModelOptions{
		Layers: layers, Hidden: 16384 / scale, Intermediate: 53248 / scale, Heads: 128, KVHeads: 8,
		HeadDim: 128 / scale,
		Vocab:   128256 / scale, ShardBytes: shardBytes / int64(scale*scale), Repeat: repeat,
	})
}

// serve puts the model on the server. A scaled model is converted with the pattern dict of the full
// one, which has as many units.
func (p *program) serve(ctx context.Context) (*hubtest.Model, error) {
	partOnly := p.finish == 0 && p.shard != ""
	full := newModel(p.layers, 1, repeatBytes)
	p.source = []string{source}
	if p.scale == 1 {
		return full, p.add(full, partOnly)
	}
	dict := filepath.Join(p.home, "dict.json")
	if err := p.add(full, true); err != nil {
		return nil, err
	}
	planned, err := p.plan(ctx, "--disk", "14GB", "--sample-bytes", "0")
	if err == nil {
		err = os.WriteFile(dict, planned.Dict, 0o666)
	}
	if err != nil {
		return nil, err
	}
	p.source = []string{source + "-scaled", "--pattern-dict", dict}
	if partOnly {
		scaled := newModel(p.layers, p.scale, repeatBytes)
		return scaled, p.add(scaled, true)
	}
	scaled := newModel(p.layers, p.scale, 0)
	return scaled, p.add(scaled, false)
}

// add makes the source repo. With unread no hash will be compared, so none is computed.
func (p *program) add(m *hubtest.Model, unread bool) error {
	sums := make([]string, len(m.Weights))
	for i := range sums {
		sums[i] = fmt.Sprintf("%064x", i+1)
	}
	if !unread {
		var workers errgroup.Group
		workers.SetLimit(runtime.GOMAXPROCS(0))
		for i, w := range m.Weights {
			workers.Go(func() error {
				h := sha256.New()
				_, err := io.CopyBuffer(h, io.NewSectionReader(w.Body, 0, w.Size),
					make([]byte, 256<<10))
				sums[i] = fmt.Sprintf("%x", h.Sum(nil))
				return err
			})
		}
		if err := workers.Wait(); err != nil {
			return err
		}
	}
	p.hub.AddRepo(p.source[0], m.Small)
	for i, w := range m.Weights {
		if _, err := p.hub.AddGenerated(p.source[0], w.Path, w.Size, sums[i], w.Body); err != nil {
			return err
		}
	}
	return nil
}
