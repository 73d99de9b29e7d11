package metadata_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
)

// TestManifestIsDocumented checks that docs/manifest.md mentions every member of the manifest,
// alone or as `list[].member`.
func TestManifestIsDocumented(t *testing.T) {
	doc := string(readFile(t, "../../docs/manifest.md"))
	for _, name := range jsonNames(reflect.TypeFor[metadata.Manifest]()) {
		if !regexp.MustCompile("`" + name + "(`|[.]|\\[])|[.]" + name + "`").MatchString(doc) {
			t.Errorf("docs/manifest.md does not mention %s", name)
		}
	}
	for _, kind := range []metadata.Kind{metadata.KindUnit, metadata.KindRemainder, metadata.KindSingle, metadata.KindIndex,
		metadata.KindConfig, metadata.KindCard, metadata.KindImage, metadata.KindCopied} {
		if !strings.Contains(doc, "| `"+string(kind)+"` |") {
			t.Errorf("docs/manifest.md does not mention kind %s", kind)
		}
	}
}

// jsonNames returns the JSON names of a struct and of the structs in it.
func jsonNames(typ reflect.Type) []string {
	for typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		names = append(append(names, name), jsonNames(typ.Field(i).Type)...)
	}
	return names
}
