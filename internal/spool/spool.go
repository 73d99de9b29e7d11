// Package spool holds the source bytes of an output between the encoder's two passes: in memory, in a file, or where they
// already lie. It decides how much of disk and memory spools may take, but not what is fetched, nor when.
package spool

import "io"

// A Spool is where the source bytes of one output wait. Offsets are those of spans.Output. Writes never overlap and may
// come from several goroutines.
type Spool interface {
	io.ReaderAt
	io.WriterAt
	// Release gives memory or disk back. The spool is not used afterwards. Release may be called twice.
	Release() error
}
