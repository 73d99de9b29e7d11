package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/python"
)

// Limits of dicts and configs. docs/format.md §16 says why each is generous.
const (
	MaxDictBytes  = 16 << 20
	maxPatterns   = 1024
	maxRegexBytes = 64 << 10 // of all patterns of a dict
	maxItems      = 500_000  // values in a config.json or a pattern dict
	// bytes of all patterns, times bytes of the paths to match
	maxMatching = 2 << 30
)

// A Pattern is one member of a pattern dict: a Python regex for whole module paths, and the
// attributes whose weights form a unit, in encoding order. An empty list stands for the module's
// own weight (docs/format.md §10).
type Pattern struct {
	Regex string
	Attrs []string
}

// A PatternDict is an ordered pattern dict. The order of attributes is part of the format, and the
// order of patterns is part of config.json.
type PatternDict []Pattern

// ParsePatternDict reads a JSON object {"regex": ["attribute", …], …}, keeps its order, and checks
// the regexes.
func ParsePatternDict(data []byte) (d PatternDict, err error) {
	if err := python.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("parse pattern dict: %w", err)
	}
	return d, nil
}

// MarshalJSON writes the dict on one line, in order.
func (d PatternDict) MarshalJSON() ([]byte, error) { return []byte(d.JSON("", "")), nil }

// UnmarshalJSON reads the members one by one, because a Go map would lose their order.
func (d *PatternDict) UnmarshalJSON(data []byte) error {
	if err := python.Bounded(data, maxItems, maxItems); err != nil {
		return err
	}
	list, _, err := python.Members(data)
	if err != nil {
		return err
	}
	*d = PatternDict{}
	for _, m := range list {
		p := Pattern{Regex: m.Key}
		if err := python.Unmarshal(m.Value, &p.Attrs); err != nil || p.Attrs == nil {
			return fmt.Errorf("pattern %q: want a list of attribute names: %.20s", p.Regex, m.Value)
		}
		*d = append(*d, p)
	}
	return d.check()
}

// check refuses more patterns than can be matched in time, repeated patterns, repeated or
// malformed attributes, and regexes that can't be matched.
func (d PatternDict) check() error {
	seen, nBytes := map[string]bool{}, 0
	for _, p := range d {
		nBytes += len(p.Regex)
		if seen[p.Regex] {
			return fmt.Errorf("pattern %q appears twice", p.Regex)
		}
		seen[p.Regex] = true
	}
	if len(d) > maxPatterns || nBytes > maxRegexBytes {
		return fmt.Errorf("a pattern dict of more than %d patterns, or %d bytes of them",
			maxPatterns, maxRegexBytes)
	}
	for _, p := range d {
		if _, err := python.Compile(p.Regex); err != nil {
			return err
		}
		if err := checkAttrs(p); err != nil {
			return err
		}
	}
	return nil
}

// checkAttrs refuses attributes that Python's getattr couldn't follow, and repeated attributes.
func checkAttrs(p Pattern) error {
	seen := map[string]bool{}
	for _, a := range p.Attrs {
		if seen[a] || slices.Contains(strings.Split(a, "."), "") {
			return fmt.Errorf("pattern %q: %q is no attribute path, or it appears twice", p.Regex, a)
		}
		seen[a] = true
	}
	return nil
}

// JSON returns the dict as Python's json.dumps writes it: in order, ASCII only, one attribute
// per line. Every line after the first starts with prefix, then one indent per level. With an empty
// indent, everything is on one line.
func (d PatternDict) JSON(prefix, indent string) string {
	members := make([]string, len(d))
	for i, p := range d {
		attrs := make([]string, len(p.Attrs))
		for k, a := range p.Attrs {
			attrs[k] = python.String(a)
		}
		members[i] = python.String(p.Regex) + ": " + python.List(attrs, prefix+indent, indent)
	}
	return python.Object(members, prefix, indent)
}

// Equal reports whether two dicts are the same, order included.
func (d PatternDict) Equal(other PatternDict) bool {
	return slices.EqualFunc(d, other,
		func(x, y Pattern) bool { return x.Regex == y.Regex && slices.Equal(x.Attrs, y.Attrs) })
}

// MatchAny lists the paths that any of the patterns match. It refuses patterns that would take very
// long.
func (d PatternDict) MatchAny(ctx context.Context, paths []string) (found []string, err error) {
	if err := d.checkCost(paths); err != nil {
		return nil, err
	}
	matched := map[string]bool{}
	for _, p := range d {
		list, err := p.Matching(ctx, paths)
		if err != nil {
			return nil, err
		}
		for _, path := range list {
			matched[path] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !matched[p] }), nil
}

// Matches reports whether any pattern matches a module. A pattern that can't be compiled matches
// nothing.
func (d PatternDict) Matches(module string) bool {
	return slices.ContainsFunc(d, func(p Pattern) bool {
		re, err := python.Compile(p.Regex)
		return err == nil && re.MatchString(module)
	})
}
