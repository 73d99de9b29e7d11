package metadata

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// FrontMatter is the YAML mapping at the start of a README.md. A nil FrontMatter is empty.
type FrontMatter yaml.Node

// frontMatterBlock finds the block between two lines of three dashes, as the Hub does.
var frontMatterBlock = regexp.MustCompile(
	`\A(?:\x{FEFF})?\s*---[ \t]*\r?\n((?s:.*?\n)??)---[ \t]*(?:\r?\n|\z)`)

// maxFrontMatter bounds the block: real ones have a few kilobytes.
const maxFrontMatter = 1 << 20

// ParseFrontMatter reads the block of a README.md. It returns nil for a file without one. A block
// that isn't a YAML mapping, or is too large or nested too deep, is an error.
func ParseFrontMatter(readme []byte) (*FrontMatter, error) {
	m := frontMatterBlock.FindSubmatch(readme)
	if m == nil {
		return nil, nil
	}
	if len(m[1]) > maxFrontMatter {
		return nil, fmt.Errorf("read front matter: %d bytes", len(m[1]))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(m[1], &doc); err != nil {
		return nil, fmt.Errorf("read front matter: %w", err)
	}
	if doc.Kind == 0 {
		return nil, nil
	}
	nLeft := 10_000
	root, err := plainCopy(doc.Content[0], 50, &nLeft)
	if err != nil {
		return nil, fmt.Errorf("read front matter: %w", err)
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("read front matter: not a mapping")
	}
	return (*FrontMatter)(root), nil
}

// plainCopy copies a node without comments, anchors, and aliases. It quotes text that a reader
// could take for a number or a boolean. It bounds depth and nodes, because aliases can describe
// endless trees.
func plainCopy(n *yaml.Node, depth int, nLeft *int) (*yaml.Node, error) {
	if *nLeft--; depth == 0 || *nLeft < 0 {
		return nil, errors.New("nested too deep or too large")
	}
	if n.Kind == yaml.AliasNode {
		return plainCopy(n.Alias, depth-1, nLeft)
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		c = stringNode(n.Value)
	}
	for _, child := range n.Content {
		cc, err := plainCopy(child, depth-1, nLeft)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, cc)
	}
	return c, nil
}

// stringNode quotes a string that some YAML reader, old or new, could take for another type, such
// as `no` and `1.0`.
func stringNode(s string) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Encode(s); err != nil || n.Style == yaml.SingleQuotedStyle {
		n = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	}
	return n
}

// all yields keys and values in order.
func (f *FrontMatter) all() iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; f != nil && i < len(f.Content); i += 2 {
			if !yield(f.Content[i].Value, f.Content[i+1]) {
				return
			}
		}
	}
}

// get returns the value of a key, or nil.
func (f *FrontMatter) get(key string) *yaml.Node {
	for k, value := range f.all() {
		if k == key {
			return value
		}
	}
	return nil
}

// Strings returns the text of a key that holds one value or a list of them. It returns nil for
// other values.
func (f *FrontMatter) Strings(key string) []string {
	n := f.get(key)
	if n == nil {
		return nil
	}
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		return nil
	}
	var list []string
	for _, item := range items {
		if item.Kind == yaml.ScalarNode && item.Tag != "!!null" {
			list = append(list, item.Value)
		}
	}
	return list
}

// String returns the first of [FrontMatter.Strings], or "".
func (f *FrontMatter) String(key string) string {
	if list := f.Strings(key); len(list) > 0 {
		return list[0]
	}
	return ""
}

func (f *FrontMatter) add(key string, value *yaml.Node) {
	f.Content = append(f.Content, stringNode(key), value)
}

// addText adds a string; "" adds nothing.
func (f *FrontMatter) addText(key, value string) {
	if value != "" {
		f.add(key, stringNode(value))
	}
}

// addList adds a list of strings; an empty list adds nothing.
func (f *FrontMatter) addList(key string, values []string) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, stringNode(v))
	}
	if len(values) > 0 {
		f.add(key, n)
	}
}

// copyStrings copies a key whose values must be strings. A single value stays single, and a list
// stays a list.
func (f *FrontMatter) copyStrings(source *FrontMatter, key string) {
	if n := source.get(key); n != nil && n.Kind == yaml.ScalarNode {
		f.addText(key, source.String(key))
		return
	}
	f.addList(key, source.Strings(key))
}

// block returns the YAML between two lines of dashes.
func (f *FrontMatter) block() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	if len(f.Content) > 0 {
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := errors.Join(enc.Encode((*yaml.Node)(f)), enc.Close()); err != nil {
			return nil, err
		}
	}
	b.WriteString("---\n")
	return b.Bytes(), nil
}
