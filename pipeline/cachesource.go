package pipeline

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
)

// cachingSource brings each weight file into the shared cache, whole and with its hash checked, before it is streamed from
// there.
type cachingSource struct {
	*hubSource
	mu    sync.Mutex
	files map[int]*sync.Mutex
}

// KeepWeights makes a Hub source store its weight files in the shared cache, where other programs find them. A source of
// another kind is returned as it is.
func KeepWeights(s Source) Source {
	h, ok := s.(*hubSource)
	if !ok {
		return s
	}
	return &cachingSource{hubSource: h, files: map[int]*sync.Mutex{}}
}

// Stream reads from the cache; the first call for a file fills it, and so does the first one after its copy was found to be
// damaged.
func (s *cachingSource) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	lock := s.lock(file)
	lock.Lock()
	defer lock.Unlock()
	if _, ok := s.client.CachedPath(s.refs[file]); !ok {
		if err := s.fill(ctx, s.refs[file]); err != nil {
			return nil, fmt.Errorf("shared cache: %w", err)
		}
	}
	return s.hubSource.Stream(ctx, file, off, end)
}

func (s *cachingSource) lock(file int) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[file] == nil {
		s.files[file] = new(sync.Mutex)
	}
	return s.files[file]
}

// fill downloads one file.
func (s *cachingSource) fill(ctx context.Context, ref hub.FileRef) error {
	w, err := s.client.CacheCreate(ref)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	r, err := s.client.Stream(ctx, ref, 0, ref.Size)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyBuffer(onlyWriter{w}, onlyReader{r}, make([]byte, blockBytes)); err != nil {
		return err
	}
	return w.Commit()
}
