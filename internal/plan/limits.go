package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Limits of what a plan is made from. docs/format.md §16 says why each is generous.
const (
	MaxFiles       = 100_000 // of a model
	MaxDictBytes   = 16 << 20
	maxUnits       = 16_384
	maxDepth       = 32 // parts of a tensor's name between its dots
	maxPatterns    = 1024
	maxRegexBytes  = 64 << 10 // of all patterns of a dict
	maxConfigItems = 500_000  // values in a config.json or a pattern dict
	maxModuleBytes = 64 << 20 // of the paths of all modules; one that several tensors lie in counts for each
	maxMatching    = 2 << 30  // bytes of all patterns times bytes of the paths that they are matched with
)

// checkName refuses a name of very many parts, each of which would be a module, and a name that no header holds.
func checkName(name string) error {
	switch {
	case strings.Count(name, ".") >= maxDepth:
		return refuse(ReasonName, "", "the name of tensor %.100q has more than %d parts", name, maxDepth)
	case len(name) > safetensors.MaxNameBytes:
		return refuse(ReasonName, "", "the name of tensor %.100q has more than %d bytes", name, safetensors.MaxNameBytes)
	}
	return nil
}

// modulePaths counts the bytes of the paths of all modules, and refuses too many.
type modulePaths int

func (n *modulePaths) add(tensor string) error {
	for p := parent(tensor); p != "" && *n <= maxModuleBytes; p = parent(p) {
		*n += modulePaths(len(p))
	}
	if *n > maxModuleBytes {
		return refuse(ReasonName, "", "the paths of all modules have more than %d bytes", maxModuleBytes)
	}
	return nil
}

// checkMatching refuses an empty dict, and one that would take very long to match with paths: each byte of a path may take a step for each byte
// of a pattern.
func (d PatternDict) checkMatching(paths []string) error {
	if len(d) == 0 {
		return errors.New("the pattern dict is empty")
	}
	nPatterns, nPaths := 0, 0
	for _, p := range d {
		nPatterns += len(p.Regex)
	}
	for _, p := range paths {
		nPaths += len(p)
	}
	if nPatterns*nPaths > maxMatching {
		return fmt.Errorf("%d bytes of patterns for %d bytes of module paths would take very long to match", nPatterns, nPaths)
	}
	return nil
}

// checkCounts refuses more units than a folder can have files, and more tensors in the output than readers accept.
func (p *Plan) checkCounts() error {
	stored := len(p.Remainder)
	for _, u := range p.Units {
		stored += len(StoredNames) + len(u.Siblings)
	}
	switch {
	case len(p.Units) > maxUnits:
		return refuse(ReasonPattern, "match larger modules", "the pattern dict names more than %d modules", maxUnits)
	case stored > safetensors.MaxTensors:
		return refuse(ReasonPattern, "match larger modules", "the output would have more than %d tensors", safetensors.MaxTensors)
	}
	return nil
}

// unreadHint goes with small files that are not what they should be.
const unreadHint = "fetch it again, or correct it in a copy of the source"
