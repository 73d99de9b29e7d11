package python

import (
	"slices"
	"strconv"
	"strings"
)

// Numbers returns a regex that matches exactly the given numbers, in the form of published dicts:
// 37, [0-4], ([0-9]|[1-2][0-9]|3[0-6]).
func Numbers(numbers []int) string {
	byLength := map[int][]string{}
	longest := 0
	for _, n := range numbers {
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

// digitAlternatives returns regexes that together match the given strings of digits. The strings
// are sorted and have the same length. First digits with the same tails share an alternative.
func digitAlternatives(nums []string) []string {
	if len(nums) == 0 || nums[0] == "" {
		return nums
	}
	var alts, lastTails []string
	var first []byte // first digits that share lastTails
	flush := func() {
		for _, t := range lastTails {
			alts = append(alts, digitClass(first)+t)
		}
	}
	for i := 0; i < len(nums); {
		digit := nums[i][0]
		var tails []string
		for ; i < len(nums) && nums[i][0] == digit; i++ {
			tails = append(tails, nums[i][1:])
		}
		if tails = digitAlternatives(tails); len(first) > 0 && !slices.Equal(tails, lastTails) {
			flush()
			first = nil
		}
		first, lastTails = append(first, digit), tails
	}
	flush()
	return alts
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
