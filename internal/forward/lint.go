package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	reference "github.com/nlpodyssey/safetensors"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// checkHeader reads back the header of a file, compares it with what was written, and looks for
// traps that a loader would fall into.
func checkHeader(o *spans.Output, f *disk.File, want *safetensors.Header) error {
	h, err := safetensors.ReadHeader(f, want.Size())
	if err == nil && !bytes.Equal(h.Raw, want.Raw) {
		err = errors.New("it is not as it was written")
	}
	if err != nil {
		return fmt.Errorf("read header again: %w: bad disk or memory, or a bug", err)
	}
	if err := readIndependently(h); err != nil {
		return err
	}
	return trapError(traps(o, h))
}

// traps lists what a loader of an output with this header would take wrongly.
func traps(o *spans.Output, h *safetensors.Header) []model.Problem {
	part := &plan.Plan{}
	for _, u := range o.Units {
		part.Units = append(part.Units, u.Unit)
	}
	for _, t := range o.Copied {
		part.Remainder = append(part.Remainder, t.Tensor)
	}
	return model.CheckHeader(h, part)
}

// CheckStored checks the header of an output that another run is said to have made: it names the
// plan's tensors and no others, in the order in which this program writes them. A
// *model.InvalidError tells what is wrong.
func CheckStored(o *spans.Output, h *safetensors.Header) error {
	if problems := traps(o, h); len(problems) > 0 {
		return model.Invalidf(o.Path, "%s: %s", problems[0].Name, problems[0].Detail)
	}
	var es []safetensors.Entry
	for _, t := range h.Tensors {
		es = append(es, safetensors.Entry{Name: t.Name, DType: t.DType, Shape: t.Shape})
	}
	want, err := safetensors.NewHeader(o.Metadata, es)
	if err == nil && !bytes.Equal(h.Raw, want.Raw) {
		err = model.Invalidf(o.Path, "its header is not as this program writes it")
	}
	return err
}

// readIndependently has the header parsed by a reader that shares no code with ours,
// nlpodyssey/safetensors, and compares what both find. Headers with dtypes that it does not know
// are not its business.
func readIndependently(h *safetensors.Header) error {
	for _, t := range h.Tensors {
		if _, err := reference.ParseDType(string(t.DType)); err != nil {
			return nil //nolint:nilerr // the check is for the dtypes that both know
		}
	}
	var other reference.Metadata
	if err := json.Unmarshal(h.Raw, &other); err != nil {
		return fmt.Errorf("a second reader refuses the header: %w; this is a bug", err)
	}
	found := other.Tensors()
	if len(found) != len(h.Tensors) {
		return fmt.Errorf("a second reader finds %d tensors in the header, not %d; this is a bug",
			len(found), len(h.Tensors))
	}
	for _, t := range h.Tensors {
		x := found[t.Name]
		same := x != nil && x.DType.String() == string(t.DType) && len(x.Shape) == len(t.Shape) &&
			x.DataOffsets == [2]uint64{uint64(t.Begin), uint64(t.End)}
		for i := 0; same && i < len(t.Shape); i++ {
			same = x.Shape[i] == uint64(t.Shape[i])
		}
		if !same {
			return fmt.Errorf(
				"a second reader finds another tensor %s in the header; this is a bug", t.Name)
		}
	}
	return nil
}

// CheckConfig makes sure that the config.json to be published states the dict by which the units
// were encoded: in another order of attributes, weights change places without a word.
func CheckConfig(config []byte, p *plan.Plan) error {
	if config == nil {
		return nil
	}
	dict, err := model.DictOfConfig(config)
	if err != nil {
		return fmt.Errorf("config.json as written: %w", err)
	}
	if !dict.Equal(p.PatternDict) {
		return trapError([]model.Problem{{Name: names.Config,
			Detail: "its pattern dict is not the one that was encoded"}})
	}
	return nil
}

// trapError is about our own output: whatever it says is a bug.
func trapError(problems []model.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	x := problems[0]
	return fmt.Errorf("the output would load wrongly: %s: %s; this is a bug", x.Name, x.Detail)
}
