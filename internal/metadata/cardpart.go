package metadata

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A published card has two owners. Our part lies between two marks, which are HTML comments. The
// first one has the hash of that part, the hash of our front matter, and one of each member of it,
// so that nothing is replaced that someone else has written there. Early marks have no hashes of
// members.
const (
	beginText = "<!-- df11-convert: this part is renewed with the model, write above or below it: %s %s %s -->\n"
	endMark   = "<!-- df11-convert: end of that part -->\n"
)

var beginMark = regexp.MustCompile(
	`(?m)^<!-- df11-convert: this part [^\n]*: (\S+) (\S+)(?: (\S+))? -->\n`)

// MarkCard returns the card with marks around our part, which is all below the front matter.
func MarkCard(card []byte) []byte {
	head := frontMatterBlock.Find(card)
	return join(head, []byte("\n"), bytes.TrimLeft(card[len(head):], "\n"), nil, head)
}

// join writes a card: a front matter, what lies above our part, our part, and what lies below it.
// It marks the part with the hashes of our own front matter.
func join(head, above, part, below, own []byte) []byte {
	mark := fmt.Appendf(nil, beginText, sum(part), sum(own), recordOf(own))
	return slices.Concat(head, above, mark, part, []byte(endMark), below)
}

func sum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// A cardParts is a card with our part in it.
type cardParts struct {
	head, above, part, below []byte
	headIsOurs               bool
	written                  record // nil if the mark has none
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
	c := &cardParts{head, rest[:at[0]], part, below, sum(head) == string(rest[at[4]:at[5]]), nil}
	if at[6] >= 0 {
		c.written = parseRecord(string(rest[at[6]:at[7]]))
	}
	return c
}

// CardPart returns the SHA-256 of our part of a card; "" if the card has none, or it was changed.
func CardPart(card []byte) string {
	if c := splitCard(card); c != nil {
		return sum(c.part)
	}
	return ""
}

// NamesBranch reports whether the commands in our part of a card name a repo's branch. Without such
// a part, it's not for us to name it.
func NamesBranch(card []byte, repo, branch string) bool {
	c := splitCard(card)
	return c == nil || bytes.Contains(c.part, []byte(human.PosixWord(CardInput{Repo: repo, Branch: branch}.Spec())+" "))
}

// HasMark reports whether a card had a part of ours, in whatever state it is now.
func HasMark(card []byte) bool { return beginMark.Match(card) }

// quantizedBy is the member that says who published the model.
const quantizedBy = "quantized_by"

// LicenseMembers are the members that say the license.
var LicenseMembers = []string{"license", "license_name", "license_link"}

// HasFront reports whether the card was written with the front matter that another card of ours
// has, whatever others have changed in it since. It ignores who published the model, because a
// folder's card may not say that.
func HasFront(card, other []byte) bool {
	c := splitCard(card)
	if c == nil || c.written == nil {
		return false
	}
	want := parseRecord(recordOf(frontMatterBlock.Find(other)))
	delete(c.written, quantizedBy)
	delete(want, quantizedBy)
	return maps.Equal(c.written, want)
}

// HasLicense reports whether a card's front matter names this license, and no other.
func HasLicense(card []byte, license string) bool {
	front, err := ParseFrontMatter(card)
	return err == nil && slices.Equal(front.License, []string{license})
}

// UpdateCard returns a marked card with what someone else has added to an earlier one. In the front
// matter, it renews the members that we wrote, as far as no one has changed them since, and those
// that name the original or are in always. It returns nil if it can't tell what was added.
func UpdateCard(earlier, marked []byte, always ...string) []byte {
	was, now := splitCard(earlier), splitCard(marked)
	if was == nil || now == nil {
		return nil
	}
	head := now.head
	if !was.headIsOurs {
		always = append([]string{"base_model", "base_model_relation"}, always...)
		if head = renewMembers(was.head, now.head, was.written, always); head == nil {
			return nil
		}
	}
	return join(head, was.above, now.part, was.below, now.head)
}

// A record has the hash of each member of a front matter, by name.
type record map[string]string

// recordOf returns the record of a front matter of ours as a mark has it: "license=HASH,tags=HASH".
func recordOf(head []byte) string {
	var list []string
	if doc := mapping(head); doc != nil {
		for i := 0; i < len(doc.Content[0].Content); i += 2 {
			name, value := doc.Content[0].Content[i], doc.Content[0].Content[i+1]
			list = append(list, name.Value+"="+valueSum(value))
		}
	}
	return cmp.Or(strings.Join(list, ","), "-")
}

func parseRecord(text string) record {
	r := record{}
	for m := range strings.SplitSeq(text, ",") {
		if name, hash, ok := strings.Cut(m, "="); ok {
			r[name] = hash
		}
	}
	return r
}

// valueSum is a hash of the texts of a member, however they are written. It is "" for a value of
// another kind, which we never write.
func valueSum(value *yaml.Node) string {
	items := value.Content
	if value.Kind == yaml.ScalarNode {
		items = []*yaml.Node{value}
	}
	var list []string
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			return ""
		}
		list = append(list, item.Value)
	}
	if value.Kind != yaml.ScalarNode && value.Kind != yaml.SequenceNode {
		return ""
	}
	return sum(fmt.Appendf(nil, "%q", list))[:16]
}

// mapping parses a front matter to a document with one YAML mapping; nil if it isn't one.
func mapping(head []byte) *yaml.Node {
	doc, err := parseBlock(head)
	if err != nil || doc == nil || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return doc
}

// memberAt returns the index of a member's name in a YAML mapping, or that of its end.
func memberAt(of *yaml.Node, name string) int {
	at := 0
	for at < len(of.Content) && of.Content[at].Value != name {
		at += 2
	}
	return at
}

// renewMembers returns an edited front matter with our present members, as far as they're ours:
// they are as we wrote them, or always has them. What someone has removed stays away. Without a
// record of what we wrote, all that we write now is ours, and so is what says the license, because
// an old one would be wrong. It returns nil if a block can't be read.
func renewMembers(edited, ours []byte, written record, always []string) []byte {
	if !frontMatterBlock.Match(edited) {
		return ours
	}
	doc, from := mapping(edited), mapping(ours)
	if _, err := ParseFrontMatter(edited); doc == nil || from == nil || err != nil {
		return nil
	}
	members, now := doc.Content[0], from.Content[0]
	names := slices.Concat(always, slices.Sorted(maps.Keys(written)))
	for i := 0; i < len(now.Content); i += 2 {
		names = append(names, now.Content[i].Value)
	}
	if written == nil {
		names = append(names, LicenseMembers...)
		always = names
	}
	for _, name := range names {
		at, nowAt := memberAt(members, name), memberAt(now, name)
		exists, wanted, sum := at < len(members.Content), nowAt < len(now.Content), ""
		if exists {
			sum = valueSum(members.Content[at+1])
		}
		isOurs := sum == written[name] && exists == (sum != "") // also if no one wrote it
		switch {
		case !isOurs && !slices.Contains(always, name):
		case exists && !wanted:
			key, was := members.Content[at], members.Content[at+1]
			members.Content = slices.Delete(members.Content, at, at+2)
			keepAnchors(members, key)
			keepAnchors(members, was)
		case exists && sum != valueSum(now.Content[nowAt+1]):
			value, was := *now.Content[nowAt+1], members.Content[at+1]
			value.HeadComment, value.LineComment, value.FootComment = was.HeadComment,
				was.LineComment, was.FootComment
			members.Content[at+1] = &value
			keepAnchors(members, was)
		case !exists && wanted:
			members.Content = append(members.Content, now.Content[nowAt:nowAt+2]...)
		}
	}
	b := bytes.NewBufferString("---\n")
	enc := yaml.NewEncoder(b)
	enc.SetIndent(2)
	if enc.Encode(doc) != nil || enc.Close() != nil {
		return nil
	}
	b.WriteString("---\n")
	if _, err := ParseFrontMatter(b.Bytes()); err != nil {
		return nil
	}
	return b.Bytes()
}

// keepAnchors moves the anchors of a value that was taken out of a mapping to the first alias of
// each, which then holds the value itself.
func keepAnchors(left, gone *yaml.Node) {
	for _, child := range gone.Content {
		keepAnchors(left, child)
	}
	if gone.Anchor == "" {
		return
	}
	if alias := aliasOf(left, gone); alias != nil {
		*alias = *gone
	}
}

// aliasOf returns the first alias of a value in a YAML tree, or nil.
func aliasOf(in, value *yaml.Node) *yaml.Node {
	if in.Alias == value {
		return in
	}
	for _, child := range in.Content {
		if found := aliasOf(child, value); found != nil {
			return found
		}
	}
	return nil
}
