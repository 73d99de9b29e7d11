package metadata

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Clean removes access tokens, and the values that the Hub would refuse, such as a path on
// somebody's disk as base_model, or that could do more than name something on its page, such as a
// link to a script, and says what it did. A license without an ID of the Hub's becomes
// the license_name of license: other.
func (f *FrontMatter) Clean() (did []string) {
	for _, m := range f.members() {
		did = append(did, m.removeTokens()...)
		did = append(did, m.remove("is a path on a disk", onDisk.MatchString)...)
		did = append(did, m.remove("isn't one line", isBroken)...)
	}
	link := member{key: "license_link", values: &f.LicenseLink}
	did = append(did, link.remove("is neither an https address nor a file's path", isNoLink)...)
	for _, v := range f.License {
		if hubrules.CheckValue("license", v) != "" {
			text := fmt.Sprintf("license %q isn't one of the Hub's, so it's the license_name of license: other", v)
			// https://huggingface.co/docs/hub/repositories-licenses
			if id := strings.ToLower(v); hubrules.CheckValue("license", id) == "" {
				text += fmt.Sprintf("; the Hub's IDs are lower case: did you mean %s?", id)
			}
			did = append(did, text)
			f.License, f.LicenseName = texts{"other"}, f.LicenseName.or(v)
			break
		}
	}
	if slices.Contains(f.License, "other") && len(f.LicenseName) == 0 {
		did = append(did, `license: other has no license_name, so that is "unknown"`)
		f.LicenseName = texts{"unknown"}
	}
	for _, m := range f.members() {
		did = append(did, m.remove("the Hub refuses",
			func(v string) bool { return hubrules.CheckValue(m.rule, v) != "" })...)
		if m.single && len(*m.values) > 1 {
			did = append(did, fmt.Sprintf("left out all values of %s but the first, %q", m.key, (*m.values)[0]))
			*m.values = (*m.values)[:1]
		}
	}
	return did
}

// LeftOut says what of a source's README.md is in no card of ours: members of its front matter,
// with a line of its own for the words of a gate, and its text if the card can't link to it.
func LeftOut(readme []byte, linked bool) (did []string) {
	taken := map[string]bool{"quantized_by": true} // we always state our own
	for _, m := range new(FrontMatter).members() {
		taken[m.key] = true
	}
	var left, gate []string
	if doc := mapping(readme); doc != nil {
		for i := 0; i < len(doc.Content[0].Content); i += 2 {
			switch key := doc.Content[0].Content[i].Value; {
			case strings.HasPrefix(key, "extra_gated_"):
				gate = append(gate, key)
			case !taken[key]:
				left = append(left, key)
			}
		}
	}
	if text := bytes.TrimSpace(readme[len(frontMatterBlock.Find(readme)):]); !linked && len(text) > 0 {
		left = append([]string{"its text"}, left...)
	}
	if len(left) > 0 {
		did = append(did, "the new card lacks "+human.List(left))
	}
	if len(gate) > 0 {
		did = append(did, "the new card doesn't ask its readers what the source's does: "+human.List(gate)+
			"; add that, and the gate in the repo's settings, yourself")
	}
	return did
}

// Limit leaves out models and data sets beyond a number of each, and says so.
func (f *FrontMatter) Limit(most int) (did []string) {
	for _, m := range f.named() {
		if n := len(*m.values); n > most {
			*m.values = (*m.values)[:most]
			did = append(did, fmt.Sprintf("left out %d of %d values of %s", n-most, n, m.key))
		}
	}
	return did
}

// Drop removes the names of models and data sets for which wrong returns true, and says so.
func (f *FrontMatter) Drop(why string, wrong func(rule, v string) bool) (did []string) {
	for _, m := range f.named() {
		did = append(did, m.remove(why, func(v string) bool { return wrong(m.rule, v) })...)
	}
	return did
}

// named lists the members that name models and data sets.
func (f *FrontMatter) named() []member {
	return slices.DeleteFunc(f.members(),
		func(m member) bool { return m.rule != "base_model" && m.rule != "datasets" })
}

// A member is one of a front matter, and whether the Hub wants a single value of it.
type member struct {
	key    string
	rule   string // the key whose rule holds
	values *texts
	single bool
}

// remove removes the values that are wrong, and says so.
func (m member) remove(why string, wrong func(v string) bool) (did []string) {
	*m.values = slices.DeleteFunc(slices.Clone(*m.values), func(v string) bool {
		if !wrong(v) {
			return false
		}
		did = append(did, fmt.Sprintf("left out %s %q, which %s", m.key, v, why))
		return true
	})
	return did
}

// removeTokens removes the values that look like access tokens, or hold one. It says so without
// them.
func (m member) removeTokens() (did []string) {
	*m.values = slices.DeleteFunc(slices.Clone(*m.values), func(v string) bool {
		issuer, _ := names.AccessToken(v)
		if issuer == "" {
			return false
		}
		did = append(did, fmt.Sprintf("left out a value of %s, which looks like an access token of %s", m.key, issuer))
		return true
	})
	return did
}

// onDisk matches paths on somebody's disk, which say nothing to others.
var onDisk = regexp.MustCompile(`^(/|~|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\|file:)`)

// isBroken reports whether a value has other characters than those of one line of text.
func isBroken(v string) bool {
	return strings.ContainsFunc(v, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp)
	})
}

// isNoLink reports whether a value is no link that the page of a repo may show: an address, or the
// path of a file in the repo, such as LICENSE.
func isNoLink(v string) bool {
	u, err := url.Parse(v)
	if err != nil {
		return true
	}
	isAddress := u.Scheme == "https" && u.Host != "" && !strings.ContainsAny(v, " <>\"`")
	return !isAddress && !names.IsSafe(v)
}

// members lists the members that are taken over from a source.
func (f *FrontMatter) members() []member {
	return []member{
		{"base_model", "base_model", &f.BaseModel, false}, {"base_model_relation", "base_model_relation", &f.Relation, true},
		{"license", "license", &f.License, false}, {"license_name", "license_name", &f.LicenseName, true},
		{"license_link", "license_link", &f.LicenseLink, true}, {"library_name", "library_name", &f.LibraryName, true},
		{"pipeline_tag", "pipeline_tag", &f.PipelineTag, true}, {"language", "language", (*texts)(&f.Language), false},
		{"datasets", "datasets", (*texts)(&f.Datasets), false},
		{"tags", "tags", (*texts)(&f.Tags), false}, {"prior", "base_model", &f.Prior, false},
	}
}

// LicenseText returns the license's own name if it has one, or else the Hub's IDs.
func (f FrontMatter) LicenseText() string {
	return strings.Join(f.LicenseName.or(strings.Join(f.License, ", ")), ", ")
}

// SetLicense replaces the license by an ID of the Hub's.
func (f *FrontMatter) SetLicense(id string) {
	f.License, f.LicenseName, f.LicenseLink = texts{id}, nil, nil
}
