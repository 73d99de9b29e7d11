package model

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// keptSource brings each weight file into the shared cache, whole and with its hash checked, before it is streamed from
// there.
type keptSource struct {
	*source
	filling []sync.Mutex // by weight file
}

// KeepWeights makes a Hub source store its weight files in the shared cache, where other programs find them. A source of
// another kind is returned as it is.
func KeepWeights(s Source) Source {
	remote, ok := s.(*source)
	if !ok || remote.client == nil {
		return s
	}
	return &keptSource{source: remote, filling: make([]sync.Mutex, len(remote.weights))}
}

// Stream reads from the cache; the first call for a file fills it, and so does the first one after its copy was found to be
// damaged.
func (s *keptSource) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	s.filling[file].Lock()
	defer s.filling[file].Unlock()
	ref := s.weights[file]
	if _, ok := s.client.CachedPath(ref); !ok {
		if err := fillCache(ctx, s.client, ref); err != nil {
			return nil, cacheError(err)
		}
	}
	return s.source.Stream(ctx, file, off, end)
}

// fillCache downloads one file, or what an earlier run has left of it.
func fillCache(ctx context.Context, c *hub.Client, ref hub.FileRef) error {
	w, err := c.CacheCreate(ctx, ref)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	r, err := c.Stream(ctx, ref, w.Offset(), ref.Size)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := streams.Copy(ctx, w, r); err != nil {
		return err
	}
	return w.Commit()
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
