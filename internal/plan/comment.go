package plan

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// comment adds warnings, differences and readers.
func (d *draft) comment() error {
	d.warnDTypes()
	d.warnLowGain()
	if d.entry != nil && d.entry.Unchecked {
		d.plan.warn(WarnUnchecked, nil, "the catalog's names for this model were not compared with its class: %s",
			d.entry.Verification)
	}
	if d.plan.class.foreign != "" {
		d.plan.warn(WarnUnchecked, nil, "the tensor names are not the module paths of %s, which the config states: "+
			"that class cannot load the output", d.plan.class.foreign)
	}
	if n := len(d.plan.Units); n > manyUnits {
		d.plan.warn(WarnSlowLoad, nil, "%d modules to compress: the official loader lists the whole model once per stored tensor and "+
			"may take hours", n)
	}
	d.noteOfficial()
	if d.entry != nil && !d.entry.LikeOnly {
		d.plan.class.comfy = d.entry.Match.ComfyUIClass
	}
	if d.entry != nil && d.opt.PatternDict == nil && !d.plan.Unlike {
		d.plan.class.published, d.plan.class.loaded = len(d.entry.DF11Repos) > 0, d.entry.loads() == Loads
	}
	d.plan.class.mlx = d.plan.Entry != "" && d.entry.MLX
	d.plan.Readers = d.plan.Lint()
	return nil
}

// manyUnits is where the official loader gets slow: it calls state_dict() for each of the six tensors of each unit.
const manyUnits = 4000

// warnDTypes warns of plain tensors in another floating-point type than the model's.
func (d *draft) warnDTypes() {
	model := d.cfg.modelDType()
	byType := map[safetensors.DType][]string{}
	var order []safetensors.DType
	for _, t := range d.plan.plainTensors() {
		if t.DType == model || !isFloat(t.DType) {
			continue
		}
		if byType[t.DType] == nil {
			order = append(order, t.DType)
		}
		byType[t.DType] = append(byType[t.DType], t.Name)
	}
	for _, dtype := range order {
		d.plan.warn(WarnDType, byType[dtype], "%s in a %s model: kept as stored, a loader may convert them",
			count(len(byType[dtype]), fmt.Sprintf("plain %s tensor", dtype)), model)
	}
}

// warnLowGain warns when most of the model passes through unchanged.
func (d *draft) warnLowGain() {
	units, plain := d.plan.UnitBytes(), d.plan.PlainBytes()
	if units < plain {
		d.plan.warn(WarnLowGain, nil, "only %d%% of the bytes are in modules that are compressed; the rest stays as it is",
			100*units/(units+plain))
	}
}

// noteOfficial lists where the official compressor would have written something else.
func (d *draft) noteOfficial() {
	if d.plan.Split {
		d.plan.differ("layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	if n := d.extraLayerTensors(); n > 0 {
		d.plan.differ("%s of layers that the model class does not build are kept; the official route drops them", count(n, "tensor"))
	}
	casts := 0
	for _, w := range d.plan.Warnings {
		if w.Code == WarnDType {
			casts += len(w.Names)
		}
	}
	if casts > 0 {
		d.plan.differ("%s keep the source's type; the official route casts them to the model's", count(casts, "plain tensor"))
	}
}

// extraLayerTensors counts the tensors of layers behind those that the config counts.
func (d *draft) extraLayerTensors() int {
	n := 0
	isExtra := func(s candidate) bool { return d.cfg.isExtraLayer(stackRegex(s.stack, nil), s.index) }
	for _, t := range d.plan.Remainder {
		if slices.ContainsFunc(splitsOf(parent(t.Name)), isExtra) {
			n++
		}
	}
	return n
}
