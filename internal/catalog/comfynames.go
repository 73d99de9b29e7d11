package catalog

import (
	_ "embed" // the table of names
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

//go:embed comfynames.txt
var comfyNames string

// An Arranged is a tensor of a ComfyUI file, made of rows of diffusers' tensors.
type Arranged struct {
	Name   string
	DType  safetensors.DType
	Shape  []int64
	Pieces []RowRange // in order
}

// A RowRange is a part of a tensor's rows, such as half 2 of 2.
type RowRange struct {
	Tensor   safetensors.Tensor
	Part, Of int64
}

// An arrangement is one line of comfynames.txt.
type arrangement struct {
	target string
	from   []string // the patterns of what it's made of
}

// arrangements are the lines of comfynames.txt, by class.
var arrangements = sync.OnceValue(func() map[string][]arrangement {
	byClass := map[string][]arrangement{}
	var classes []string
	for line := range strings.Lines(comfyNames) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#":
		case strings.HasPrefix(line, "["):
			classes = strings.Fields(strings.Trim(strings.TrimSpace(line), "[]"))
		default:
			a := arrangement{f[0], f[:1]}
			if len(f) > 2 {
				a.from = f[2:]
			}
			for _, class := range classes {
				byClass[class] = append(byClass[class], a)
			}
		}
	}
	return byClass
})

// wildcards are how the patterns of comfynames.txt match, longest first.
var wildcards = strings.NewReplacer(`\*\*`, `(.+)`, `\*`, `([^.]+)`, `#`, `(\d+)`, `@`, `([^.]+)`)

var wildcard = regexp.MustCompile(`\*\*|[*#@]`)

// part matches the end of a pattern that takes some of the rows.
var part = regexp.MustCompile(`^(.*)\[(\d+)/(\d+)\]$`)

// Arrange returns the tensors of a class of diffusers as a ComfyUI file has them. ok is false if it
// isn't known how. The error is a [RefusedError] if a tensor is missing, or has no place.
func Arrange(class string, tensors []safetensors.Tensor) (list []Arranged, ok bool, err error) {
	lines, ok := arrangements()[class]
	if !ok {
		return nil, false, nil
	}
	byName := map[string]safetensors.Tensor{}
	for _, t := range tensors {
		byName[t.Name] = t
	}
	used := map[string]int64{} // how many rows have a place
	for _, a := range lines {
		first, _, _ := splitPart(a.from[0])
		match := regexp.MustCompile("^" + wildcards.Replace(regexp.QuoteMeta(first)) + "$")
		for _, t := range tensors {
			m := match.FindStringSubmatch(t.Name)
			if m == nil {
				continue
			}
			made, err := a.make(class, m[1:], byName)
			if err != nil {
				return nil, true, err
			}
			for _, p := range made.Pieces {
				used[p.Tensor.Name] += rowsOf(p.Tensor) / p.Of
			}
			list = append(list, made)
		}
	}
	for _, t := range tensors {
		if used[t.Name] != rowsOf(t) {
			return nil, true, Refuse(hint.NotArranged, "ComfyUI's files of %s have no place for %s", class, t.Name)
		}
	}
	return list, true, nil
}

// make joins the tensors of one line; words are what its wildcards stand for.
func (a arrangement) make(class string, words []string,
	byName map[string]safetensors.Tensor) (made Arranged, err error) {
	made.Name = fill(a.target, words)
	for _, pattern := range a.from {
		pattern, n, of := splitPart(pattern)
		t, ok := byName[fill(pattern, words)]
		switch {
		case !ok:
			return made, Refuse(hint.NotArranged, "%s lacks %s, which is in ComfyUI's %s", class, fill(pattern, words), made.Name)
		case len(made.Pieces) == 0:
			made.DType, made.Shape = t.DType, slices.Clone(t.Shape)
			if len(t.Shape) > 0 {
				made.Shape[0] = 0
			}
		}
		rows := rowsOf(t)
		if t.DType != made.DType {
			return made, Refuse(hint.NotArranged, "%s is %s and %s is %s, but ComfyUI's %s joins them",
				made.Pieces[0].Tensor.Name, made.DType, t.Name, t.DType, made.Name)
		}
		if len(t.Shape) != len(made.Shape) || rows%of != 0 ||
			len(t.Shape) > 0 && !slices.Equal(t.Shape[1:], made.Shape[1:]) {
			return made, Refuse(hint.NotArranged, "%s of %s doesn't fit ComfyUI's %s", t.Name, class, made.Name)
		}
		if len(t.Shape) > 0 {
			made.Shape[0] += rows / of
		}
		made.Pieces = append(made.Pieces, RowRange{t, n, of})
	}
	return made, nil
}

// fill puts words in place of a pattern's wildcards.
func fill(pattern string, words []string) string {
	return wildcard.ReplaceAllStringFunc(pattern, func(string) string {
		word := words[0]
		words = words[1:]
		return word
	})
}

// splitPart splits "name[2/2]" into "name", 2, and 2. A name alone is part 1 of 1.
func splitPart(pattern string) (name string, n, of int64) {
	m := part.FindStringSubmatch(pattern)
	if m == nil {
		return pattern, 1, 1
	}
	n, _ = strconv.ParseInt(m[2], 10, 64)
	of, _ = strconv.ParseInt(m[3], 10, 64)
	return m[1], n, of
}

// rowsOf returns the length of the first dimension, 1 for a single value.
func rowsOf(t safetensors.Tensor) int64 {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[0]
}
