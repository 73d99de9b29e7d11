package catalog

import (
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// A Layout is how a model's files are arranged, before and after the conversion.
type Layout string

// Layouts. The single forms put every unit and the remainder into one file.
const (
	Transformers       Layout = "transformers"        // units, remainder.safetensors, full config.json
	TransformersSingle Layout = "transformers-single" // df11.safetensors, full config.json
	Diffusers          Layout = "diffusers"           // units, remainder.safetensors, config.json
	DiffusersSingle    Layout = "diffusers-single"    // df11.safetensors, config.json
	// one file with ComfyUI's names, and a config.json for other readers than ComfyUI
	ComfyUI Layout = "comfyui-single"
)

// Single reports whether the layout puts everything into one file.
func (l Layout) Single() bool { return l != Transformers && l != Diffusers }

// Family returns the layout of the source files. A source of one family can't be written in the
// layout of another.
func (l Layout) Family() Layout {
	switch l {
	case TransformersSingle:
		return Transformers
	case DiffusersSingle:
		return Diffusers
	default:
		return l
	}
}

// Stem returns the name, without extension, by which libraries find the weights of a source. The
// official compressor also gives it to the remainder (docs/format.md §10).
func (l Layout) Stem() string {
	if l.Family() == Diffusers {
		return "diffusion_pytorch_model"
	}
	return "model"
}

// Name returns the value of a layout option that stands for l.
func (l Layout) Name() string {
	if l == ComfyUI {
		return "single"
	}
	return string(l)
}

// LayoutNames returns the values that ParseLayout takes, one for each layout.
func LayoutNames() (list []string) {
	for _, l := range []Layout{Transformers, TransformersSingle, Diffusers, DiffusersSingle, ComfyUI} {
		list = append(list, l.Name())
	}
	return list
}

// ParseLayout reads the value of a layout option; "" stands for any layout.
func ParseLayout(s string) (Layout, error) {
	switch {
	case s == ComfyUI.Name():
		return ComfyUI, nil
	case s == "" || slices.Contains(LayoutNames(), s):
		return Layout(s), nil
	}
	return "", Refuse(hint.Layout.With("layouts", strings.Join(LayoutNames(), ", ")), "unknown layout %q", s)
}
