package main

import (
	"testing"
)

// TestSizeFlag: a size has a unit, decimal or binary, in either case; it may have fractions or be a
// rate. A bare number is no size.
func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]sizeFlag{
		"0": 0, "17b": 17, "8GB": 8e9, "8GiB": 8 << 30, "8gib": 8 << 30, "512MiB": 512 << 20, "1.5G": 1.5e9, "1.5g": 1.5e9,
		"2k": 2000, "2kb": 2000, "2KiB": 2048, "3m": 3e6, "1T": 1e12, "1TiB": 1 << 40, "50MB/s": 50e6, "12 GB": 12e9, ".5GB": 5e8,
	} {
		var s sizeFlag
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"5", "64", "1.5", "999", "4090", "1048576", "", "GB", "-1", "-1GB", "1XB", "8 G B", "1.2.3MB", "inf", "nan", "2000000TB", "1e30"} {
		var s sizeFlag
		if err := s.Set(text); err == nil || s != 0 {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
}

// TestCardFlag: a GPU's memory is a size, in GB or GiB, or a card's name. Makers write GB for GiB.
func TestCardFlag(t *testing.T) {
	for text, want := range map[string]cardFlag{
		"24GB": 24, "24gib": 24, "80GiB": 80, "24564MiB": 23, "24000MB": 24, "4090": 24, "RTX 4090": 24, "h100": 80,
		"24": 0, "0.5GB": 0, "4060Ti": 0, "A100": 0, "1001GB": 0, "": 0,
	} {
		var c cardFlag
		if err := c.Set(text); c != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d GiB, %v, want %d", text, c, err, want)
		}
	}
}
