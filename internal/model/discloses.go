package model

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// MaxDisclosed is the size of the largest file without weights in which Discloses looks:
// vocabularies are larger.
const MaxDisclosed = 1 << 20

// maxPath is the length of the longest path that Linux opens, PATH_MAX. Longer words are data.
const maxPath = 4096

// onDisk matches absolute paths on somebody's disk, and those below a home.
var onDisk = regexp.MustCompile(`^(/[\w.-]+/|~/|[A-Za-z]:[/\\]+\w|\\\\\w|file:/)[^\n]*$`)

// Discloses says what of a local source may be no one else's business, although the result
// publishes it: access tokens in small files and in the metadata of weight files, and paths on a
// disk in JSON files and in that metadata. The result keeps these bytes, so that decode can restore
// the files. It never returns a token itself.
func (m *Model) Discloses(p *plan.Plan) (texts []string) {
	for _, d := range m.disclosed(p) {
		texts = append(texts, d.text)
	}
	return texts
}

// Token returns the first file of a local source that the result publishes with what looks like an
// access token, and says what it is. It leaves out files that are asked for by their paths.
func (m *Model) Token(p *plan.Plan, asked []string) (file, text string) {
	for _, d := range m.disclosed(p) {
		if d.token && !slices.Contains(asked, d.file) {
			return d.file, d.text
		}
	}
	return "", ""
}

// A disclosure is something in a file that may be no one else's business.
type disclosure struct {
	file, text string
	token      bool // not a path
}

// disclosed returns what [Model.Discloses] says. It reads the files once: they're bound to what they
// were then.
func (m *Model) disclosed(p *plan.Plan) []disclosure {
	if m.Local && m.disclosures == nil {
		m.disclosures = append([]disclosure{}, m.findDisclosures(p)...)
	}
	return m.disclosures
}

func (m *Model) findDisclosures(p *plan.Plan) (found []disclosure) {
	list := published(p)
	for _, f := range list {
		if reader.IsSafetensors(f.Path) {
			continue
		}
		b, err := m.readSmall(f)
		if err != nil {
			continue // what needs the file says what is wrong with it
		}
		if issuer, at := names.AccessToken(string(b)); issuer != "" {
			found = append(found, disclosure{f.Path, human.Message("%s: line %d holds what looks like an access "+
				"token of %s, which the result keeps; remove it from the source before you publish", f.Path,
				1+bytes.Count(b[:at], []byte("\n")), issuer), true})
		}
		if path.Ext(f.Path) == ".json" {
			for _, text := range pathsInJSON(f.Path, b) {
				found = append(found, disclosure{f.Path, text, false})
			}
		}
	}
	return append(found, m.inHeaders(list)...)
}

// readSmall reads a file of at most MaxDisclosed bytes. If that isn't what was checked before, the
// result can't get the file anymore.
func (m *Model) readSmall(f plan.File) ([]byte, error) {
	b, err := disk.Read(filepath.Join(m.Folder, filepath.FromSlash(f.Path)), MaxDisclosed)
	if _, isMade := m.made[f.Path]; isMade || f.Size > MaxDisclosed {
		return b, err
	}
	if err != nil || m.bind(f.Path, b) != nil {
		m.unbind(f.Path)
	}
	return b, err
}

// pathsInJSON says which values of a JSON file are paths on a disk, such as the _name_or_path of a
// fine-tune.
func pathsInJSON(file string, b []byte) (found []string) {
	var value any
	if python.Unmarshal(b, &value) != nil {
		return nil
	}
	var walk func(key string, value any)
	walk = func(key string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(k, v[k])
			}
		case []any:
			for _, x := range v {
				walk(key, x)
			}
		case string:
			if onDisk.MatchString(v) {
				found = append(found, human.Message("%s: %s is %q, a path on a disk, which the result keeps; "+
					"remove it from the source if it's private", file, key, v))
			}
		}
	}
	walk("", value)
	return found
}

// MetadataKeys lists the keys in the metadata of the weight files, whose headers the manifest
// keeps. It leaves out format, which names the framework, and keys that hold a token.
func (m *Model) MetadataKeys() (keys []string) {
	for _, w := range m.Original().Listing.Weights {
		for _, e := range w.Header.Metadata {
			if issuer, _ := names.AccessToken(e.Key); issuer == "" && e.Key != "format" {
				keys = append(keys, human.Message("%s", e.Key))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// inHeaders is Discloses for the metadata in headers of weight files: those that are converted,
// whose headers the manifest keeps, and copied ones. Trainers write paths and command lines there.
// All files of a model often have the same metadata, so it says each thing once.
func (m *Model) inHeaders(copied []plan.File) (found []disclosure) {
	said := map[string]bool{}
	look := func(file string, h *safetensors.Header, keeps string) {
		for _, e := range h.Metadata {
			for _, d := range inEntry(e) {
				if text := d.text + ", which " + keeps; !said[text] {
					said[text] = true
					d.file, d.text = file, human.Message("%s: __metadata__ in its header: %s", file, text)
					found = append(found, d)
				}
			}
		}
	}
	for _, w := range m.Original().Listing.Weights {
		look(w.Path, w.Header, names.Manifest+" keeps, so that decode can restore the file; save the "+
			"file without it before you publish")
	}
	for _, f := range copied {
		if !reader.IsSafetensors(f.Path) {
			continue
		}
		if h := m.headerOf(f); h != nil {
			look(f.Path, h, "the result keeps; save the file without it before you publish")
		}
	}
	return found
}

// headerOf reads the header of a copied file. It returns nil if there's none.
func (m *Model) headerOf(f plan.File) *safetensors.Header {
	var file io.ReaderAt
	if f.Size <= MaxDisclosed {
		b, err := m.readSmall(f)
		if err != nil {
			return nil // what needs the file says what is wrong with it
		}
		file = bytes.NewReader(b)
	} else {
		opened, stays, err := m.disk.open(f.Path)
		if err != nil {
			return nil
		}
		if !stays {
			defer opened.Close()
		}
		file = opened
	}
	h, err := safetensors.ReadHeader(file, f.Size)
	if err != nil {
		return nil
	}
	return h
}

// inEntry says what in an entry of metadata looks like an access token, and the first path on a
// disk in it. Values are any text: command lines, and JSON as well as Python's lists.
func inEntry(e safetensors.MetadataEntry) (found []disclosure) {
	for _, text := range []string{e.Key, e.Value} {
		if issuer, _ := names.AccessToken(text); issuer != "" {
			key := fmt.Sprintf("%q", e.Key)
			if keyIssuer, _ := names.AccessToken(e.Key); keyIssuer != "" {
				key = "a key"
			}
			found = append(found, disclosure{text: key + " holds what looks like an access token of " + issuer, token: true})
		}
		for word := range strings.FieldsFuncSeq(text, betweenPaths) {
			if len(word) > maxPath || !onDisk.MatchString(word) {
				continue
			}
			if issuer, _ := names.AccessToken(e.Key + word); issuer == "" {
				found = append(found, disclosure{text: fmt.Sprintf("%q holds %q, a path on a disk", e.Key,
					strings.TrimRight(word, `\`))})
				break
			}
		}
	}
	return found
}

// betweenPaths reports whether a character ends a path in a command line or a list.
func betweenPaths(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`=()[]{}<>|", r)
}
