package main

import "testing"

// TestSizeFlag: decimal and binary units in either case, fractions, plain bytes, and a rate; nothing else is a size.
func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]sizeFlag{
		"0": 0, "1024": 1024, "17b": 17, "8GB": 8e9, "8GiB": 8 << 30, "8gib": 8 << 30, "512MiB": 512 << 20, "1.5G": 1.5e9, "1.5g": 1.5e9,
		"2k": 2000, "2kb": 2000, "2KiB": 2048, "3m": 3e6, "1T": 1e12, "1TiB": 1 << 40, "50MB/s": 50e6, " 12 GB ": 12e9, ".5GB": 5e8,
	} {
		var s sizeFlag
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1", "-1GB", "1XB", "8 G B", "1.2.3MB", "inf", "nan", "2000000TB", "1e30"} {
		var s sizeFlag
		if err := s.Set(text); err == nil || s != 0 {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
}
