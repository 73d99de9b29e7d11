package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
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

// whyNotList says in plain words why a text can't be read as a list of models.
func whyNotList(text []byte) error {
	var top yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil || len(top.Content) != 1 {
		return whyNotYAML(text, err)
	}
	faults := explainList(top.Content[0])
	if len(faults) == 0 {
		return errors.New("it's YAML, but not a list of models")
	}
	return errors.New(strings.Join(transform(faults[:min(5, len(faults))],
		func(f listFault) string { return string(f) }), "; "))
}

// yamlWords has plain words for what the YAML library says about a line.
var yamlWords = []struct{ theirs, ours string }{
	{"mapping values are not allowed", "a colon can't be there: put the value in quotes, or check the indentation"},
	{"expected '-' indicator", "it isn't indented like the lines above it"},
	{"expected key", "it isn't indented like the lines above it"},
	{"expected ',' or ']'", "[ has no ]"},
	{"expected ',' or '}'", "{ has no }"},
	{"unexpected end of stream", "a quotation mark has no other"},
	{"could not find expected ':'", "a colon is missing"},
	{"character that cannot start any token", "a value that begins with @, %, or ` needs quotes"},
	{"unknown anchor", "a value that begins with * needs quotes"},
	{"control characters", "it has a control character"},
	{"UTF-8", "it isn't UTF-8 text"},
}

// whyNotYAML says in plain words what is wrong with a text that the YAML library refused with err.
func whyNotYAML(text []byte, err error) error {
	n := badLine(text)
	if line := strings.Split(string(text), "\n")[n-1]; strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
		return fmt.Errorf("line %d begins with a tab: use spaces", n)
	}
	for _, w := range yamlWords {
		if err != nil && strings.Contains(err.Error(), w.theirs) {
			return fmt.Errorf("line %d: %s", n, w.ours)
		}
	}
	return fmt.Errorf("line %d can't be read as YAML", n)
}

// badLine returns the first line, counted from 1, after which a text is no longer YAML. The YAML
// library names the line where the value around it begins, or none. A text that ends inside brackets
// or quotes isn't YAML either, so some lines more may be.
func badLine(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	return sort.Search(len(lines), func(n int) bool {
		for more := range min(8, len(lines)-n) {
			if yaml.Unmarshal(bytes.Join(lines[:n+more], nil), new(yaml.Node)) == nil {
				return false
			}
		}
		return true
	})
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
		case i > 0 && key.Value == "models":
			faults = append(faults, faultAt(key, "models is there twice"))
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
	switch {
	case n.ShortTag() == "!!null":
		return []listFault{faultAt(n, "an entry is empty")}
	case n.Kind == yaml.SequenceNode:
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
