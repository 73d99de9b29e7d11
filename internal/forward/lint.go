package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	reference "github.com/nlpodyssey/safetensors"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// checkHeader reads back the header of a file, compares it with what was written, and looks for
// traps for a loader.
func checkHeader(log *slog.Logger, o *spans.Output, f *disk.File, want *safetensors.Header) error {
	h, err := safetensors.ReadHeader(f, want.Size())
	if err == nil && !bytes.Equal(h.Raw, want.Raw) {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return fmt.Errorf("read header again: %w: bad disk or memory, or a bug", err)
	}
	if err := readIndependently(log.With("file", o.Path), h); err != nil {
		return err
	}
	return trapError(traps(o, h))
}

// traps lists what a loader would misread in an output with this header.
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

// CheckStored checks the header of an output that another run claims to have made. The header must
// name the plan's tensors and no others, in the order in which df11-convert writes them. Otherwise
// the error is a *model.InvalidError.
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
		err = model.Invalidf(o.Path, "its header is not what df11-convert writes")
	}
	return err
}

// readIndependently parses the header with a reader that shares no code with ours,
// nlpodyssey/safetensors, and compares the results. It skips headers with dtypes that this reader
// doesn't know, and logs that.
func readIndependently(log *slog.Logger, h *safetensors.Header) error {
	for _, t := range h.Tensors {
		if _, err := reference.ParseDType(string(t.DType)); err != nil {
			log.Info("no second reader reads the header, because it doesn't know a dtype", "tensor",
				t.Name, "dtype", t.DType)
			return nil //nolint:nilerr // no error of the header's
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
		if x == nil || x.DType.String() != string(t.DType) ||
			x.DataOffsets != [2]uint64{uint64(t.Begin), uint64(t.End)} ||
			!slices.EqualFunc(x.Shape, t.Shape, sameSize) {
			return fmt.Errorf("a second reader reads tensor %s in the header differently; "+
				"this is a bug", t.Name)
		}
	}
	return nil
}

func sameSize(a uint64, b int64) bool { return a == uint64(b) }

// CheckConfig checks that the config.json to publish has the dict that the units were encoded with.
// With another order of attributes, weights would swap places without an error.
func CheckConfig(config []byte, p *plan.Plan) error {
	if config == nil {
		return nil
	}
	stored, err := model.ParseConfig(config)
	if err != nil {
		return fmt.Errorf("config.json as written: %w", err)
	}
	if !stored.Dict.Equal(p.PatternDict) || stored.Version != p.Version() {
		return trapError([]model.Problem{{Name: names.Config,
			Detail: "its pattern dict differs from the plan's"}})
	}
	return nil
}

// trapError returns an error about our own output. Any problem is a bug.
func trapError(problems []model.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	x := problems[0]
	return fmt.Errorf("the output would load wrongly: %s: %s; this is a bug", x.Name, x.Detail)
}
