//go:build unix || js

package disk

import (
	"errors"
	"os"
	"syscall"
)

// IsNoSpace reports whether an error comes from a full disk or quota.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// syncDir syncs a rename to disk. File systems that can't sync a directory return EINVAL; their
// renames are as durable as they can be.
func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
