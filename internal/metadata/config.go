package metadata

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// The member that makes a config.json one of a DF11 model, and its fixed values (docs/format.md
// §12).
const (
	configKey       = "dfloat11_config"
	threadsPerBlock = 512
	bytesPerThread  = 8
)

// Config returns the config.json of a plan's output. version is the one of the format
// ([plan.Plan.Version]). source is the source's config.json.
func Config(p *plan.Plan, version string, source []byte) ([]byte, error) {
	if p.Config != "" {
		return InsertConfig(source, version, p.PatternDict)
	}
	return newConfig(version, p.PatternDict,
		p.Layout == catalog.Diffusers || p.Layout == catalog.DiffusersSingle), nil
}

// newConfig returns what the official compressor writes if the source has no config.json: the
// dfloat11_config alone, without a final newline. In the published DF11 repos of diffusers models
// it has a newline, and a model_type that no pipeline loader reads.
func newConfig(version string, dict catalog.PatternDict, pipeline bool) []byte {
	members, end := []string{configMember(version, dict, "  ", "  ")}, ""
	if pipeline {
		members, end = append(members, `"model_type": "llama"`), "\n"
	}
	return []byte(python.Object(members, "", "  ") + end)
}

// InsertConfig returns config with dfloat11_config appended to its object. Every byte of config
// stays, in order; the new text follows its indentation and line ends. config may hold whatever
// Python's json reads, including a byte order mark, NaN, and Infinity. It must be an object without
// that member, which the plan ensures. version is the one of the format ([plan.Plan.Version]).
func InsertConfig(config []byte, version string, dict catalog.PatternDict) ([]byte, error) {
	o, err := scanObject(config)
	if err != nil {
		return nil, fmt.Errorf("insert into config.json: %w", err)
	}
	return slices.Concat(config[:o.end], []byte(o.insertion(version, dict)), config[o.end:]), nil
}

// RemoveConfig undoes [InsertConfig]: it returns config without its dfloat11_config, and every other
// byte as it is. It returns nil if nothing else is in it, or only what [Config] adds for pipelines.
func RemoveConfig(config []byte) ([]byte, error) {
	members, from, err := python.Members(config)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	i := slices.IndexFunc(members, func(m python.Member) bool { return m.Key == configKey })
	if i < 0 {
		return config, nil
	}
	others := slices.Delete(slices.Clone(members), i, i+1)
	isNew := func(m python.Member) bool { return m.Key == "model_type" && string(m.Value) == `"llama"` }
	if len(others) == 0 || len(others) == 1 && isNew(others[0]) {
		return nil, nil
	}
	to := members[i].End
	if i > 0 {
		from = members[i-1].End
	} else { // the comma goes, too
		to += bytes.IndexByte(config[to:], ',') + 1
	}
	return slices.Concat(config[:from], config[to:]), nil
}

// object describes the top-level object of a config, to insert a member.
type object struct {
	empty bool
	// where the new member goes: after the last value, or after the brace of an empty object
	end     int
	newline string // line end; "" when the object is on one line
	indent  string // of the members
}

// insertion returns the text to insert: separator, key, and value in the object's style.
func (o *object) insertion(version string, dict catalog.PatternDict) string {
	switch {
	case o.newline == "" && o.empty:
		return configMember(version, dict, "", "")
	case o.newline == "":
		return ", " + configMember(version, dict, "", "")
	}
	text := "\n" + o.indent + configMember(version, dict, o.indent, o.indent)
	if !o.empty {
		text = "," + text
	}
	return strings.ReplaceAll(text, "\n", o.newline)
}

// configMember returns `"dfloat11_config": {…}` as json.dumps writes it. Lines after the first
// start with prefix, then one indent per level. An empty indent puts everything on one line. With
// parameters it lacks the two members that the official loader reads first, so that this loader
// stops before it opens a weight file (docs/format.md §17).
func configMember(version string, dict catalog.PatternDict, prefix, indent string) string {
	inner := prefix + indent
	members := []string{fmt.Sprintf(`"version": "%s"`, version)}
	if version != plan.ParametersVersion {
		members = append(members,
			`"threads_per_block": `+python.List([]string{strconv.Itoa(threadsPerBlock)}, inner, indent),
			fmt.Sprintf(`"bytes_per_thread": %d`, bytesPerThread))
	}
	members = append(members, `"pattern_dict": `+dict.JSON(inner, indent))
	return fmt.Sprintf(`"%s": %s`, configKey, python.Object(members, prefix, indent))
}

// beforeMember matches the white space before a member. It shows the object's line end and
// indentation.
var beforeMember = regexp.MustCompile(`^[ \t\r\n]*?(?:,[ \t\r\n]*?)?(\r?\n)?([ \t]*)["}]`)

// scanObject finds the end of a config's last member, and the object's style.
func scanObject(config []byte) (*object, error) {
	members, begin, err := python.Members(config)
	if err != nil {
		return nil, err
	}
	o := &object{empty: len(members) == 0, end: begin}
	last := begin // where the member before the last ends
	for _, m := range members {
		if m.Key == configKey {
			return nil, fmt.Errorf("it has a %s already", configKey)
		}
		last, o.end = o.end, m.End
	}
	if style := beforeMember.FindSubmatch(config[last:]); style != nil {
		o.newline, o.indent = string(style[1]), string(style[2])
	}
	return o, nil
}
