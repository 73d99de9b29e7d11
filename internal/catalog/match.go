package catalog

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/python"
)

// Match finds which of the modules each pattern matches. A pattern without attributes may also match
// parameters (docs/format.md §17). Match refuses patterns that the official loader would confuse,
// paths that two patterns match, and matches inside matches (docs/format.md §10, §14).
func (d PatternDict) Match(ctx context.Context, modules, parameters []string) (found [][]string,
	err error) {
	if err = d.check(); err == nil && len(d) == 0 {
		err = errors.New("the pattern dict is empty")
	}
	if err != nil {
		return nil, Refuse(hint.DictForm, "%v", err)
	}
	if err = cmp.Or(d.checkCost(slices.Concat(modules, loaderPaths(d))),
		d.Singles().checkCost(parameters)); err != nil {
		return nil, err
	}
	owner := map[string]int{} // module → index of its pattern
	found = make([][]string, len(d))
	for i, p := range d {
		if found[i], err = p.Matching(ctx, modules); err != nil {
			return nil, err
		}
		if len(p.Attrs) == 0 {
			more, err := p.Matching(ctx, parameters)
			if err != nil {
				return nil, err
			}
			found[i] = append(found[i], more...)
		}
		for _, m := range found[i] {
			if j, ok := owner[m]; ok {
				return nil, Refuse(hint.Disjoint,
					"module %s matches two patterns: %q and %q", m, d[j].Regex, d[i].Regex)
			}
			owner[m] = i
		}
	}
	if err := checkNesting(found, owner); err != nil {
		return nil, err
	}
	return found, checkLoaderLoop(ctx, d)
}

// Matching lists the modules that the pattern matches.
func (p Pattern) Matching(ctx context.Context, modules []string) (found []string, err error) {
	re, err := python.Compile(p.Regex)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if re.MatchString(m) {
			found = append(found, m)
		}
	}
	return found, nil
}

// CountMatching counts the patterns that match any of the modules.
func (d PatternDict) CountMatching(ctx context.Context, modules []string) (n int) {
	for _, p := range d {
		if found, err := p.Matching(ctx, modules); err == nil && len(found) > 0 {
			n++
		}
	}
	return n
}

// Singles returns the patterns without attributes: those of single modules and parameters.
func (d PatternDict) Singles() PatternDict {
	return slices.DeleteFunc(slices.Clone(d), func(p Pattern) bool { return len(p.Attrs) > 0 })
}

// checkCost refuses patterns that would take very long to match with paths: each byte of a path may
// take a step for each byte of a pattern.
func (d PatternDict) checkCost(paths []string) error {
	var nPatterns, nPaths int64
	for _, p := range d {
		nPatterns += int64(len(p.Regex))
	}
	for _, p := range paths {
		nPaths += int64(len(p))
	}
	if nPatterns*nPaths > maxMatching {
		return Refuse(hint.Costly,
			"%d bytes of patterns for %d bytes of module paths would take very long to match",
			nPatterns, nPaths)
	}
	return nil
}

// checkNesting refuses a unit inside another: they would share a decode buffer (docs/format.md
// §14).
func checkNesting(found [][]string, owner map[string]int) error {
	for _, m := range slices.Concat(found...) {
		for p := Parent(m); p != ""; p = Parent(p) {
			if _, ok := owner[p]; ok {
				return Refuse(hint.Nested,
					"module %s lies inside module %s", m, p)
			}
		}
	}
	return nil
}

// checkLoaderLoop refuses a pattern that matches the parent of the last attribute of an earlier
// pattern. The official loader would take that path for the next module (docs/format.md §14).
func checkLoaderLoop(ctx context.Context, d PatternDict) error {
	paths := loaderPaths(d)
	for j := range d {
		found, err := d[j].Matching(ctx, paths[:j])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return Refuse(hint.LoaderLoop,
				"pattern %q matches %q, the parent of the last attribute of %q, which confuses the official loader",
				d[j].Regex, found[0], d[slices.Index(paths, found[0])].Regex)
		}
	}
	return nil
}

// loaderPaths returns the parent of each pattern's last attribute, or "", which no pattern matches.
func loaderPaths(d PatternDict) []string {
	paths := make([]string, len(d))
	for i, p := range d {
		if len(p.Attrs) > 0 {
			paths[i] = Parent(p.Attrs[len(p.Attrs)-1])
		}
	}
	return paths
}
