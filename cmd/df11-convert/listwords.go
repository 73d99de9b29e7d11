package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// listMembers are the members of an entry (docs/models.schema.json).
var listMembers = strings.Fields("source revision component file repo-id layout pattern-dict like private license expect")

// A listFault is where the form of a list is wrong, in plain words.
type listFault string

func faultAt(n *yaml.Node, format string, args ...any) listFault {
	return listFault(fmt.Sprintf("line %d: "+format, append([]any{n.Line}, args...)...))
}

// explainList says what is wrong with the form of a list.
func explainList(top *yaml.Node) (faults []listFault) {
	switch top.Kind {
	case yaml.SequenceNode:
		return []listFault{faultAt(top, "write models: above the entries")}
	case yaml.MappingNode:
	default:
		return []listFault{faultAt(top, "%.50q is no list of models", top.Value)}
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], resolve(top.Content[i+1])
		switch {
		case key.Value != "models":
			faults = append(faults, faultAt(key, "unknown member %.50q: a list has only models", key.Value))
		case value.Kind != yaml.SequenceNode:
			faults = append(faults, faultAt(value, "models isn't a list: put a dash before each model"))
		default:
			for _, entry := range value.Content {
				faults = append(faults, explainEntry(resolve(entry))...)
			}
		}
	}
	return faults
}

// explainEntry says what is wrong with the form of an entry.
func explainEntry(n *yaml.Node) (faults []listFault) {
	if n.Kind == yaml.SequenceNode {
		return []listFault{faultAt(n, "an entry is a list: want a model, such as org/name")}
	}
	seen, unknown := map[string]bool{}, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch {
		case !slices.Contains(listMembers, key.Value):
			faults = append(faults, faultAt(key, "unknown member %.50q", key.Value))
			unknown = true
		case seen[key.Value]:
			faults = append(faults, faultAt(key, "%s is there twice", key.Value))
		case key.Value == "private" && value.ShortTag() != "!!bool":
			faults = append(faults, faultAt(value, "private is %.50q: want true or false", value.Value))
		case value.Kind != yaml.ScalarNode:
			faults = append(faults, faultAt(value, "%s isn't a text", key.Value))
		}
		seen[key.Value] = true
	}
	if unknown {
		faults = append(faults, listFault("an entry has "+strings.Join(listMembers, ", ")))
	}
	return faults
}

// resolve returns what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
