package metadata

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A published card has two owners. Our part lies between two marks, which are HTML comments. The
// first one has the hash of that part, and of our front matter, so that nothing is replaced that
// someone else has written there.
const (
	beginText = "<!-- df11-convert: this part is renewed with the model, write above or below it: %s %s -->\n"
	endMark   = "<!-- df11-convert: end of that part -->\n"
)

var beginMark = regexp.MustCompile(
	`(?m)^<!-- df11-convert: this part [^\n]*: (\S+) (\S+) -->\n`)

// MarkCard returns the card with marks around our part, which is all below the front matter.
func MarkCard(card []byte) []byte {
	head := frontMatterBlock.Find(card)
	return join(head, []byte("\n"), bytes.TrimLeft(card[len(head):], "\n"), nil, head)
}

// join writes a card: a front matter, what lies above our part, our part, and what lies below it. It
// marks the part with the hash of our own front matter.
func join(head, above, part, below, own []byte) []byte {
	mark := fmt.Appendf(nil, beginText, sum(part), sum(own))
	return slices.Concat(head, above, mark, part, []byte(endMark), below)
}

func sum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// A cardParts is a card with our part in it.
type cardParts struct {
	head, above, part, below []byte
	headIsOurs               bool
}

// splitCard takes a card apart. It returns nil if the marks aren't there, or if our part is another
// than the one that was written: then whose words these are isn't known.
func splitCard(card []byte) *cardParts {
	head := frontMatterBlock.Find(card)
	rest := card[len(head):]
	at := beginMark.FindSubmatchIndex(rest)
	if at == nil {
		return nil
	}
	part, below, ended := bytes.Cut(rest[at[1]:], []byte(endMark))
	if !ended || sum(part) != string(rest[at[2]:at[3]]) || beginMark.Match(below) {
		return nil
	}
	return &cardParts{head, rest[:at[0]], part, below, sum(head) == string(rest[at[4]:at[5]])}
}

// CardPart returns the SHA-256 of our part of a card; "" if the card has none, or it was changed.
func CardPart(card []byte) string {
	if c := splitCard(card); c != nil {
		return sum(c.part)
	}
	return ""
}

// UpdateCard returns a marked card with what someone else has added to an earlier one. A front matter
// that was edited keeps all members but those that say what the model was made from. It returns nil
// if it can't tell what was added.
func UpdateCard(earlier, marked []byte) []byte {
	was, now := splitCard(earlier), splitCard(marked)
	if was == nil || now == nil {
		return nil
	}
	head := now.head
	if !was.headIsOurs {
		if head = updateFrontMatter(was.head, now.head); head == nil {
			return nil
		}
	}
	return join(head, was.above, now.part, was.below, now.head)
}

// setMember sets a member of a YAML mapping, or removes it without texts.
func setMember(of *yaml.Node, name string, to texts) bool {
	var value yaml.Node
	if value.Encode(to) != nil {
		return false
	}
	at := 0
	for at < len(of.Content) && of.Content[at].Value != name {
		at += 2
	}
	switch {
	case at < len(of.Content) && to == nil:
		of.Content = slices.Delete(of.Content, at, at+2)
	case at < len(of.Content):
		of.Content[at+1] = &value
	case to != nil:
		of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &value)
	}
	return true
}

// updateFrontMatter sets the members of an edited front matter that name the original. It returns nil
// if the block can't be read.
func updateFrontMatter(edited, ours []byte) []byte {
	block := frontMatterBlock.FindSubmatch(edited)
	if block == nil {
		return ours
	}
	var doc yaml.Node
	from, err := ParseFrontMatter(ours)
	if err != nil || len(block[1]) > maxFrontMatter || yaml.Unmarshal(block[1], &doc) != nil ||
		len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	members := doc.Content[0]
	for _, m := range []struct {
		name  string
		value texts
	}{{"base_model", from.BaseModel}, {"base_model_relation", from.Relation}} {
		if !setMember(members, m.name, m.value) {
			return nil
		}
	}
	b := bytes.NewBufferString("---\n")
	enc := yaml.NewEncoder(b)
	enc.SetIndent(2)
	if enc.Encode(&doc) != nil || enc.Close() != nil {
		return nil
	}
	b.WriteString("---\n")
	return b.Bytes()
}
