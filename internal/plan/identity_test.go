package plan

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// TestUnlike checks that a refusal says what a target holds: another source, or which of layout,
// folder, file, and dict its conversion of the same source has instead.
func TestUnlike(t *testing.T) {
	mine := Identity{Source: "org/model", Layout: catalog.Diffusers, Folder: "transformer", Dict: "d"}
	for _, c := range []struct {
		change func(*Identity)
		want   string
	}{
		{func(id *Identity) { id.Source = "org/other" }, "org/other"},
		{func(id *Identity) { id.Source = "" }, ""},
		{func(id *Identity) { id.Layout = catalog.DiffusersSingle }, "org/model (in the layout diffusers-single)"},
		{func(id *Identity) { id.Layout = "" }, "org/model (other weights, layout, or pattern dict)"}, // an older journal
		{func(id *Identity) { id.Folder = "unet" }, "org/model (of unet)"},
		{func(id *Identity) { id.Folder = "" }, "org/model (of the top folder)"},
		{func(id *Identity) { id.File = "b.safetensors" }, "org/model (of b.safetensors)"},
		{func(id *Identity) { id.Dict = "e" }, "org/model (with another pattern dict)"},
		{func(id *Identity) { id.Dict = "" }, "org/model (other weights)"},
		{func(*Identity) {}, "org/model (other weights)"},
	} {
		held := mine
		c.change(&held)
		if got := held.Unlike(mine); got != c.want {
			t.Errorf("%+v: %q, want %q", held, got, c.want)
		}
	}
	single := Identity{Layout: catalog.ComfyUI}
	file := Identity{Layout: catalog.ComfyUI, File: "a.safetensors"}
	if got := single.Unlike(file); got != "a local model (of the usual weight files)" {
		t.Error(got)
	}
}
