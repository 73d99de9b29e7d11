package plan

import (
	"strings"

	"github.com/df11-convert/df11-convert/internal/pyjson"
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

// checkJSON refuses a JSON file of the source that would take very much memory.
func checkJSON(reason Reason, name string, data []byte, mostValues int) error {
	if err := pyjson.Bounded(data, mostValues, mostValues); err != nil {
		return refuse(reason, "", "read %s: %v", name, err)
	}
	return nil
}
