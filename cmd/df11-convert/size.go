package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/df11-convert/df11-convert/internal/human"
)

// maxSize is more than any disk holds, and small enough that sums of sizes stay inside int64.
const maxSize = 1 << 60

// sizeFlag is a number of bytes as a flag: 512MiB, 14GB, 1.5g; "/s" may follow.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	n, err := humanize.ParseBigBytes(strings.TrimSuffix(strings.TrimSpace(text), "/s")) // exact: 2.01kB are 2010 bytes
	if err != nil || !n.IsInt64() || n.Int64() > maxSize {
		return fmt.Errorf("%q is not a size such as 512MiB or 14GB", text)
	}
	*s = sizeFlag(n.Int64())
	return nil
}

func (s *sizeFlag) String() string {
	if *s <= 0 {
		return ""
	}
	return human.Bytes(int64(*s))
}

func (s *sizeFlag) Type() string { return "size" }
