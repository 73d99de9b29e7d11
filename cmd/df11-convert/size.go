package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// units of sizes on the command line; longest first, so that "MiB" is not taken for "B".
var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1}, {"", 1},
}

// sizeFlag is a number of bytes as a flag: 512MiB, 14GB, 1.5g.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	lower := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "/s"))
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || x < 0 || x*u.bytes > 1<<60 {
			break
		}
		*s = sizeFlag(x * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 512MiB or 14GB", text)
}

func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return human.Bytes(int64(*s))
}

func (s *sizeFlag) Type() string { return "size" }
