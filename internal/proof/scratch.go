package proof

import (
	"fmt"
	"os"
)

// scratch is a temporary file that has no name any more where the system allows that, so that a killed process leaves nothing
// behind.
type scratch struct {
	*os.File
	named bool
}

// newScratch makes an empty scratch file in dir, which it makes as well.
func newScratch(dir string) (*scratch, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "spool-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	return &scratch{f, os.Remove(f.Name()) != nil}, nil
}

// Close gives the disk back.
func (s *scratch) Close() error {
	err := s.File.Close()
	if s.named {
		return os.Remove(s.Name())
	}
	return err
}
