// Package human formats numbers, lists, and words of a command line, and orders names, as people
// read them. It doesn't parse numbers: each flag knows its own syntax.
package human

import "strconv"

// Bytes formats a number of bytes with three significant digits, in decimal units as the Hub does:
// "5 B", "1.62 GB". (BytesN of go-humanize 1.1 won't do: it adds decimals to whole numbers, as in
// "5.00 GB".)
func Bytes(n int64) string {
	x := float64(n)
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if x < 999.5 {
			return digits(x) + " " + unit
		}
		x /= 1000
	}
	return digits(x) + " TB"
}

// BytesUp is Bytes, but rounded up, so a limit that you copy from the output is large enough.
// Parsing "2.03 kB" as a float can give 2029, so BytesUp raises exact values, too.
func BytesUp(n int64) string {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	if unit == 1 {
		return Bytes(n)
	}
	return Bytes((n/unit + 1) * unit)
}

// digits formats three significant digits, or a whole number.
func digits(x float64) string {
	switch {
	case x >= 100 || x == float64(int64(x)):
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Grouped formats all digits of a number, with a comma between thousands: "1,234,567".
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns a number with its noun, such as "2 files".
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Grouped(int64(n)) + " " + noun
}

// Percentage returns how many percent of a whole a part is; 0 of nothing.
func Percentage(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
