//go:build !linux

package pagecache

import "os"

func drop(*os.File, int64, int64) {}

// Memory doesn't know.
func Memory() int64 { return 0 }
