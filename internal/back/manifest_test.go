package back

import (
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// TestHeadersOfAManifestShareOneLimit checks that the original's headers in a manifest have the
// limit of a model's headers, together.
func TestHeadersOfAManifestShareOneLimit(t *testing.T) {
	var header strings.Builder
	for i := range safetensors.MaxTensors/2 + 1 {
		fmt.Fprintf(&header, `%c"w%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, "{,"[min(i, 1)], i)
	}
	header.WriteByte('}')
	f := metadata.SourceFile{SHA256: "x", Header: header.String(), Size: 8 + int64(header.Len())}
	d := &model.DF11{Manifest: &metadata.Manifest{Source: metadata.Source{Files: []metadata.SourceFile{f, f}}}}
	if _, _, err := ofManifest(d, 1, nil); err == nil || !strings.Contains(err.Error(), "tensors in one model") {
		t.Errorf("got %v", err)
	}
}
