package plan

import (
	"slices"
	"strconv"
	"strings"
)

// indexRegex returns a regex that matches exactly the decimal forms of the given numbers, written the way published
// dicts write them: 37, [0-4], ([0-9]|[1-2][0-9]|3[0-6]).
func indexRegex(nums []int) string {
	byLength := map[int][]string{}
	longest := 0
	for _, n := range nums {
		s := strconv.Itoa(n)
		byLength[len(s)] = append(byLength[len(s)], s)
		longest = max(longest, len(s))
	}
	var alts []string
	for n := 1; n <= longest; n++ {
		slices.Sort(byLength[n])
		alts = append(alts, digitAlternatives(slices.Compact(byLength[n]))...)
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return "(" + strings.Join(alts, "|") + ")"
}

// digitAlternatives returns regexes that together match the given strings of digits, all of one length and sorted.
// First digits with the same tails share an alternative.
func digitAlternatives(nums []string) []string {
	if len(nums) == 0 {
		return nil
	}
	if nums[0] == "" {
		return []string{""}
	}
	var alts, lastTails []string
	var first []byte // first digits that share lastTails
	flush := func() {
		for _, t := range lastTails {
			alts = append(alts, digitClass(first)+t)
		}
	}
	for _, group := range byFirstDigit(nums) {
		tails := digitAlternatives(group.tails)
		if len(first) > 0 && !slices.Equal(tails, lastTails) {
			flush()
			first = nil
		}
		first, lastTails = append(first, group.digit), tails
	}
	flush()
	return alts
}

// digitGroup is what follows one first digit.
type digitGroup struct {
	digit byte
	tails []string
}

// byFirstDigit groups sorted strings of digits by their first.
func byFirstDigit(nums []string) []digitGroup {
	var groups []digitGroup
	for _, s := range nums {
		if n := len(groups); n == 0 || groups[n-1].digit != s[0] {
			groups = append(groups, digitGroup{digit: s[0]})
		}
		last := &groups[len(groups)-1]
		last.tails = append(last.tails, s[1:])
	}
	return groups
}

// digitClass returns a regex for one of the digits, which are sorted: 3, [1-2], [3-57].
func digitClass(digits []byte) string {
	if len(digits) == 1 {
		return string(digits)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(digits); {
		j := i
		for j+1 < len(digits) && digits[j+1] == digits[j]+1 {
			j++
		}
		b.WriteByte(digits[i])
		if j > i {
			b.WriteString("-" + string(digits[j]))
		}
		i = j + 1
	}
	b.WriteByte(']')
	return b.String()
}
