package model

import (
	"errors"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Explain makes the hint of an error about the source's files fit the source. What is wrong in a
// repo only its owner can fix. If there's nothing to convert, the card may name the model that
// there is: anyone can write that, so the hint says whose claim it is.
func (m *Model) Explain(err error) error {
	cause, named := hint.Of(err).Cause, m.namedBase()
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok && cause == "" {
		cause = refused.Hint.Cause
	}
	m.nameSource(err)
	switch {
	case !m.Local && cause == hint.HeaderCut.Cause:
		return hint.On(err, hint.HubCut)
	case !m.Local && cause == hint.Pointer.Cause:
		return hint.On(err, hint.HubPointer)
	case named == "":
	case cause == hint.GGUF.Cause, cause == hint.Quantized.Cause:
		return hint.On(err, hint.NamedOriginal.With("repo", named))
	case cause == hint.Adapter.Cause:
		return hint.On(err, hint.NamedBase.With("repo", named))
	}
	return err
}

// nameSource names the source's tensor instead of the one that is made of it for ComfyUI.
func (m *Model) nameSource(err error) {
	refused, ok := errors.AsType[*plan.RefusedError](err)
	if !ok || refused.Tensor == "" {
		return
	}
	for _, a := range m.Arrangement {
		if text, isIt := strings.CutPrefix(refused.Detail, a.Name+" "); isIt && a.Name == refused.Tensor {
			refused.Tensor = a.Pieces[0].Tensor.Name
			refused.Detail = refused.Tensor + " " + text
		}
	}
}

// namedBase returns the only repo that the card names as its base model, if that's another one, or "".
func (m *Model) namedBase() string {
	base, _ := baseOf(m.card)
	if strings.EqualFold(base, m.ID) {
		return ""
	}
	return base
}
