package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// IsNoSpace reports whether an error comes from a full disk or quota.
func IsNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err,
		windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// syncDir does nothing: Windows has no way to sync a directory.
func syncDir(*os.Root, string) error { return nil }
