package convert_test

import (
	"context"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestFileLaidOutAgainGivesItsRoomBack checks a unit with a chunk of more weights than fit the
// GPU's shared memory, which shows only while it's encoded. Its file is made again in BF16, on a
// disk without space for both.
func TestFileLaidOutAgainGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	const shard = "model.safetensors"
	files := mediumHead().Files()
	weights := tensor(t, files[shard], head)
	// half of all exponents are one, which gets one bit, and fills the first chunk
	for i := range len(weights) / 2 {
		if i < 30_000 || i%2 == 0 {
			copy(weights[2*i:], []byte{0x80, 0x3f})
		}
	}
	w := newWorld(t, nil)
	w.AddRepo(sourceRepo, files)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := w.convert(ctx, t, t.TempDir(), func(o *convert.Options) { o.Disk = 5_700_000 })
	shared.Must(t, err)
	if u := r.Made.UnitsBF16; len(u) != 1 || u[0].Path != "lm_head" || u[0].Reason != "shared_memory" {
		t.Errorf("units in BF16: %v", u)
	}
	checkPublished(t, w)
}
