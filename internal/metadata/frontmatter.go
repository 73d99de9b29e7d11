package metadata

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// FrontMatter is the YAML at the start of a README.md: the members that describe a DF11 model as
// well as its source, in the order in which we write them. Others are ignored.
type FrontMatter struct {
	BaseModel   texts `yaml:"base_model,omitempty"`
	Relation    texts `yaml:"base_model_relation,omitempty"`
	QuantizedBy texts `yaml:"quantized_by,omitempty"`
	License     texts `yaml:"license,omitempty"`
	LicenseName texts `yaml:"license_name,omitempty"`
	LicenseLink texts `yaml:"license_link,omitempty"`
	LibraryName texts `yaml:"library_name,omitempty"`
	PipelineTag texts `yaml:"pipeline_tag,omitempty"`
	Language    list  `yaml:"language,omitempty"`
	Datasets    list  `yaml:"datasets,omitempty"`
	// Prior is the repo from which diffusers loads the first half of a combined pipeline, such as
	// KandinskyV22CombinedPipeline.
	Prior texts `yaml:"prior,omitempty"`
	Tags  list  `yaml:"tags,omitempty"`
}

// texts are the texts of a member that holds one of them or a list.
type texts []string

// UnmarshalYAML takes texts as they are written, because `no` and `1.0` are texts here. It ignores
// other values.
func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range items {
		if item.Kind == yaml.ScalarNode && item.ShortTag() != "!!null" && item.Value != "" {
			*t = append(*t, item.Value)
		}
	}
	return nil
}

// MarshalYAML writes a single text as it is, and a list otherwise.
func (t texts) MarshalYAML() (any, error) {
	if len(t) == 1 {
		return t[0], nil
	}
	return []string(t), nil
}

// list are texts that are written as a list even if there's only one.
type list texts

func (l *list) UnmarshalYAML(n *yaml.Node) error { return (*texts)(l).UnmarshalYAML(n) }

// or returns the texts, or another text if there are none. "" is no text.
func (t texts) or(other string) texts {
	if len(t) > 0 || other == "" {
		return t
	}
	return texts{other}
}

// frontMatterBlock finds the block between two lines of three dashes, as the Hub does.
var frontMatterBlock = regexp.MustCompile(
	`\A(?:\x{FEFF})?\s*---[ \t]*\r?\n((?s:.*?\n)??)---[ \t]*(?:\r?\n|\z)`)

// These bound the block. Real ones have a few kilobytes, or hundreds with a model-index, and about
// 20 members. The YAML library compares each member's name with each other, and takes some 200
// bytes for a node.
const (
	maxFrontMatter = 1 << 20
	maxMembers     = 1000
	maxMarks       = 120_000 // before each node lies one of nodeMarks, except that a comma may begin two
)

// nodeMarks are what begins a member or a value in YAML.
var nodeMarks = []string{"\n", ",", "[", "{", ":", "- ", "? "}

// ParseFrontMatter reads the block of a README.md. A file without one has no members. A block that
// isn't a YAML mapping, or is too large, is an error, and so is a file in UTF-16.
func ParseFrontMatter(readme []byte) (f FrontMatter, err error) {
	if bytes.HasPrefix(readme, []byte("\xff\xfe")) || bytes.HasPrefix(readme, []byte("\xfe\xff")) {
		return f, errors.New("read front matter: the file is UTF-16; save it as UTF-8")
	}
	doc, err := parseBlock(readme)
	if err == nil && doc != nil {
		err = doc.Decode(&f)
	}
	if wrong, is := errors.AsType[*yaml.TypeError](err); is {
		err = errors.New("it isn't a list of members, such as license: mit")
		if m := twice.FindStringSubmatch(wrong.Error()); m != nil {
			err = fmt.Errorf("it has %s twice", m[1])
		}
	}
	if err != nil {
		return FrontMatter{}, fmt.Errorf("read front matter: %w", err)
	}
	return f, nil
}

// twice finds the name of a repeated member in an error of the YAML library.
var twice = regexp.MustCompile(`mapping key "?([^"]+)"? already defined`)

// parseBlock parses the block of a README.md. It returns nil if there is none, or nothing in it.
func parseBlock(readme []byte) (*yaml.Node, error) {
	var doc yaml.Node
	m := frontMatterBlock.FindSubmatch(readme)
	switch {
	case m == nil:
		return nil, nil
	case len(m[1]) > maxFrontMatter:
		return nil, errors.New("too large")
	}
	marks := 0
	for _, mark := range nodeMarks {
		marks += bytes.Count(m[1], []byte(mark))
	}
	if marks > maxMarks {
		return nil, errors.New("it has more than 120,000 names and values")
	}
	if err := yaml.Unmarshal(m[1], &doc); err != nil || len(doc.Content) == 0 {
		return nil, err
	}
	if len(doc.Content[0].Content) > 2*maxMembers {
		return nil, errors.New("it has more than 1,000 members")
	}
	return &doc, nil
}

// LicenseCard returns a README.md with the license of f, its language, and its task, and nothing
// else.
func (f FrontMatter) LicenseCard() ([]byte, error) { return f.Licensing().Block() }

// Licensing returns the license of f, its language, and its task, and nothing else.
func (f FrontMatter) Licensing() FrontMatter {
	return FrontMatter{License: f.License, LicenseName: f.LicenseName, LicenseLink: f.LicenseLink,
		PipelineTag: f.PipelineTag, Language: f.Language}
}

// Passed returns the values of f that the card of a quantized model gets. task is what the Hub says
// of the source's, if its card doesn't.
func (f FrontMatter) Passed(task string) FrontMatter {
	f.Clean()
	f.BaseModel, f.Relation, f.QuantizedBy, f.LibraryName = nil, nil, nil, nil
	f.PipelineTag = f.PipelineTag.or(task)
	return f
}

// Equal reports whether two front matters have the same values.
func (f FrontMatter) Equal(other FrontMatter) bool {
	a, errA := f.Block()
	b, errB := other.Block()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// HasLicenseOf reports whether two front matters say the same of the license.
func (f FrontMatter) HasLicenseOf(other FrontMatter) bool {
	license := func(f FrontMatter) FrontMatter {
		return FrontMatter{License: f.License, LicenseName: f.LicenseName, LicenseLink: f.LicenseLink}
	}
	return license(f).Equal(license(other))
}

// Block returns the YAML between two lines of dashes.
func (f FrontMatter) Block() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(f), enc.Close())
	b.WriteString("---\n")
	return b.Bytes(), err
}
