package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

// limitFlags limit a command's threads and memory.
type limitFlags struct {
	workers int
	memory  sizeFlag
}

func (f *limitFlags) register(p *pflag.FlagSet) {
	p.IntVar(&f.workers, "workers", 0, "threads that work at once (default all cores)")
	f.registerMemory(p)
}

func (f *limitFlags) registerMemory(p *pflag.FlagSet) {
	p.Var(&f.memory, "memory",
		"memory budget, at least 64MiB (default 75% of a container's limit, else none)")
}

// set adds the flags to what a command may use.
func (f *limitFlags) set(m pipeline.Means) pipeline.Means {
	m.Workers, m.Memory = f.workers, int64(f.memory)
	return m
}

// maxSize is more than any disk holds, and small enough that sums of sizes stay inside int64.
const maxSize = 1 << 60

// sizeFlag is a flag for a number of bytes: 512MiB, 14GB, 1.5g; "/s" may follow.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	text = strings.TrimSpace(text)
	n, err := humanize.ParseBigBytes(strings.TrimSuffix(text, "/s")) // exact: 2.01kB are 2010 bytes
	switch bare := strings.Trim(text, "0123456789.") == "" && text != "0"; {
	case err != nil || !n.IsInt64() || n.Int64() > maxSize:
		return errors.New("not a size such as 512MiB or 14GB")
	case bare:
		return fmt.Errorf("a size without a unit: write %[1]sGB, %[1]sMiB, or %[1]sB", text)
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

// countFlag is a flag for a number of tokens: 20480, or 20k, in which k is 1,024 as in the names of
// models.
type countFlag int64

func (c *countFlag) Set(text string) error {
	digits, factor := text, int64(1)
	for unit, n := range map[string]int64{"k": 1 << 10, "m": 1 << 20} {
		if rest, ok := strings.CutSuffix(strings.ToLower(text), unit); ok {
			digits, factor = rest, n
		}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
	if err != nil || n < 0 || n > maxSize/factor {
		return errors.New("not a number of tokens such as 20480 or 32k")
	}
	*c = countFlag(n * factor)
	return nil
}

func (c *countFlag) String() string { return strconv.FormatInt(int64(*c), 10) }

func (c *countFlag) Type() string { return "tokens" }

// cardFlag is a flag for a GPU's memory in GiB: a size, or a card's name.
type cardFlag int64

func (c *cardFlag) Set(text string) error {
	if *c = cardFlag(fits.Card(text)); *c > 0 {
		return nil
	}
	var size sizeFlag
	if size.Set(text) != nil {
		err := errors.New("not a size such as 24GB, or a card such as 4090 or H100")
		if size.Set(text+"GB") == nil && inOneCard(size/1e9) {
			return hint.On(err, hint.CardUnit.With("number", text))
		}
		return hint.On(err, hint.CardMemory)
	}
	gib := size / 1e9 // makers count GiB and write GB
	if strings.ContainsAny(text, "iI") {
		gib = size >> 30
	}
	if !inOneCard(gib) { // 4060Ti would be tebibytes, and 3060GB is probably a card too
		return hint.On(errors.New("not the memory of one GPU"), hint.CardMemory)
	}
	*c = cardFlag(gib)
	return nil
}

// inOneCard reports whether a card may have so much memory, in GiB.
func inOneCard(gib sizeFlag) bool { return 0 < gib && gib <= 1000 }

func (c *cardFlag) String() string {
	if *c == 0 {
		return ""
	}
	return fmt.Sprintf("%dGB", *c)
}

func (c *cardFlag) Type() string { return "size|card" }
