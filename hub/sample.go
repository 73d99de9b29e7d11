package hub

import (
	"fmt"
	"math/rand/v2"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/human"
)

// A WitnessError says what another client sees in a repo that isn't as it was published.
type WitnessError struct {
	Repo, Commit string
	Files        []string // each with what's wrong
}

func (e *WitnessError) Error() string {
	return fmt.Sprintf("another client sees other files in %s than were published: %s", e.Repo,
		human.List(e.Files))
}

// Unwrap returns the kind of failure, which knows what to do about it.
func (e *WitnessError) Unwrap() error { return wire.ErrDiffers }

// rangeBytes is the size of a sample.
const rangeBytes = 1 << 10

// A sample is a part of a file that was uploaded, kept for [Client.Witness].
type sample struct {
	off  int64
	data []byte
}

type sampleKey struct{ repo, sha256 string }

// keepSample keeps a random part of a file that the hub has now.
func (u *upload) keepSample() error {
	n := min(u.Size, rangeBytes)
	s := sample{off: rand.Int64N(u.Size - n + 1), data: make([]byte, n)}
	if _, err := u.Reader.ReadAt(s.data, s.off); err != nil {
		return fmt.Errorf("read %s: %w", u.Path, err)
	}
	u.samples.Store(sampleKey{u.repo, u.SHA256}, s)
	return nil
}
