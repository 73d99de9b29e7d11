package metadata

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// FrontMatter is the YAML block at the start of a source's README.md. A nil FrontMatter is an empty one.
type FrontMatter struct{ mapping *yaml.Node }

// frontMatterBlock finds the block between two lines of three dashes, as the Hub does.
var frontMatterBlock = regexp.MustCompile(`\A(?:\x{FEFF})?\s*---[ \t]*\r?\n((?s:.*?\n)??)---[ \t]*(?:\r?\n|\z)`)

// maxFrontMatter bounds the block: real ones have a few kilobytes.
const maxFrontMatter = 1 << 20

// ParseFrontMatter reads the block of a README.md. A file without one gives nil; a block that is not a YAML mapping, or
// not a sane one, is an error.
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
	return &FrontMatter{root}, nil
}

// plainCopy copies a node without comments, anchors and aliases, and quotes text that a reader could take for a number or
// a boolean. Depth and number of nodes are bounded, since aliases can describe endless trees.
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

// stringNode is a string that every YAML reader takes for one, `no` and `1.0` included.
func stringNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	out, err := yaml.Marshal(s) // quotes for readers of old and new YAML alike
	switch {
	case err != nil:
		n.Style = yaml.DoubleQuotedStyle
	case out[0] == '|':
		n.Style = yaml.LiteralStyle
	case out[0] == '"' || out[0] == '\'':
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// get returns the value of a key, or nil.
func (f *FrontMatter) get(key string) *yaml.Node {
	if f == nil {
		return nil
	}
	for i := 0; i+1 < len(f.mapping.Content); i += 2 {
		if f.mapping.Content[i].Value == key {
			return f.mapping.Content[i+1]
		}
	}
	return nil
}

// keys returns the keys in order.
func (f *FrontMatter) keys() []string {
	if f == nil {
		return nil
	}
	var keys []string
	for i := 0; i+1 < len(f.mapping.Content); i += 2 {
		keys = append(keys, f.mapping.Content[i].Value)
	}
	return keys
}

// Strings returns the text of a key that holds one value or a list of them; other values give nil.
func (f *FrontMatter) Strings(key string) []string {
	n := f.get(key)
	switch {
	case n == nil || n.Tag == "!!null":
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	case n.Kind != yaml.SequenceNode:
		return nil
	}
	var list []string
	for _, item := range n.Content {
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

// yamlWriter collects the keys of a new block.
type yamlWriter struct{ mapping yaml.Node }

func (w *yamlWriter) add(key string, value *yaml.Node) {
	w.mapping.Kind = yaml.MappingNode
	w.mapping.Content = append(w.mapping.Content, stringNode(key), value)
}

// text adds a string; "" adds nothing.
func (w *yamlWriter) text(key, value string) {
	if value != "" {
		w.add(key, stringNode(value))
	}
}

// list adds a list of strings; an empty one adds nothing.
func (w *yamlWriter) list(key string, values []string) {
	if len(values) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, stringNode(v))
	}
	w.add(key, n)
}

// copyStrings adds a key of the source whose values must be strings: a single value stays single, a list stays a list.
func (w *yamlWriter) copyStrings(f *FrontMatter, key string) {
	if n := f.get(key); n != nil && n.Kind == yaml.ScalarNode {
		w.text(key, f.String(key))
		return
	}
	w.list(key, f.Strings(key))
}

// bytes returns the block with its lines of dashes.
func (w *yamlWriter) bytes() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	if len(w.mapping.Content) > 0 {
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := errors.Join(enc.Encode(&w.mapping), enc.Close()); err != nil {
			return nil, err
		}
	}
	b.WriteString("---\n")
	return b.Bytes(), nil
}
