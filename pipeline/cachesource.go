package pipeline

import (
	"context"
	"errors"
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
			return nil, cacheError(err)
		}
	}
	return s.hubSource.Stream(ctx, file, off, end)
}

// CacheError says that the shared cache could not be written.
type CacheError struct{ Err error }

func (e *CacheError) Error() string { return "shared cache: " + e.Err.Error() }

func (e *CacheError) Unwrap() error { return e.Err }

// Hint says what can be done about it.
func (e *CacheError) Hint() string {
	return "choose another folder for the cache with HF_HUB_CACHE, or leave out --cache"
}

// cacheError tells what went wrong here from what went wrong at the Hub or on the way from it.
func cacheError(err error) error {
	if e := (*hub.Error)(nil); errors.As(err, &e) {
		return err
	}
	return &CacheError{err}
}

func (s *cachingSource) lock(file int) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[file] == nil {
		s.files[file] = new(sync.Mutex)
	}
	return s.files[file]
}

// fill downloads one file, or what an earlier run has left of it.
func (s *cachingSource) fill(ctx context.Context, ref hub.FileRef) error {
	w, err := s.client.CacheCreate(ctx, ref)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	r, err := s.client.Stream(ctx, ref, w.Offset(), ref.Size)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyBuffer(onlyWriter{w}, onlyReader{r}, make([]byte, blockBytes)); err != nil {
		return err
	}
	return w.Commit()
}
