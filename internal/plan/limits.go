package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/encoder"
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
	// of the paths of all modules; one that several tensors lie in counts for each
	maxModuleBytes = 64 << 20
	// bytes of all patterns times bytes of the paths that they are matched with
	maxMatching = 2 << 30
)

// renameHint goes with names that no result can have.
const renameHint = "rename it in a copy of the source"

// modulePaths counts the bytes of the paths of all modules.
type modulePaths int

// add refuses the name of a tensor that no header holds, or with very many parts, each of which
// would be a module; and too many paths.
func (n *modulePaths) add(tensor string) error {
	if strings.Count(tensor, ".") >= maxDepth || len(tensor) > safetensors.MaxNameBytes {
		return refuse(renameHint,
			"the name of tensor %.100q has more than %d parts, or more than %d bytes", tensor,
			maxDepth, safetensors.MaxNameBytes)
	}
	for p := parent(tensor); p != "" && *n <= maxModuleBytes; p = parent(p) {
		*n += modulePaths(len(p))
	}
	if *n > maxModuleBytes {
		return refuse("convert a model with fewer or shorter names",
			"the paths of all modules have more than %d bytes", maxModuleBytes)
	}
	return nil
}

// checkMatching refuses an empty dict, and one that would take very long to match with paths: each
// byte of a path may take a step for each byte of a pattern.
func (d PatternDict) checkMatching(paths []string) error {
	if len(d) == 0 {
		return errors.New("the pattern dict is empty")
	}
	nPatterns := sum(d, func(p Pattern) int64 { return int64(len(p.Regex)) })
	nPaths := sum(paths, func(p string) int64 { return int64(len(p)) })
	if nPatterns*nPaths > maxMatching {
		return fmt.Errorf(
			"%d bytes of patterns for %d bytes of module paths would take very long to match",
			nPatterns, nPaths)
	}
	return nil
}

// checkCounts refuses more units than a folder can have files, and more tensors in the output than
// readers accept.
func (p *Plan) checkCounts() error {
	switch stored := len(encoder.ArrayNames())*len(p.Units) + len(p.plainTensors()); {
	case len(p.Units) > maxUnits:
		return refuse("match larger modules", "the pattern dict names more than %d modules",
			maxUnits)
	case stored > safetensors.MaxTensors:
		return refuse("match larger modules", "the output would have more than %d tensors",
			safetensors.MaxTensors)
	}
	return nil
}

// unreadHint goes with small files that are not what they should be.
const unreadHint = "fetch it again, or correct it in a copy of the source"
