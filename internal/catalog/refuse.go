package catalog

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// A RefusedError says that a source can't be converted as asked. The command line exits with 5.
type RefusedError struct {
	Detail string    `json:"why"`  // one sentence: what is wrong
	Hint   hint.Hint `json:"hint"` // what to do or to use instead; may be empty
	Next   string    `json:"-"`    // the hint for programs (docs/json.md); may be empty
	Tensor string    `json:"-"`    // the tensor that Detail begins with; may be empty
	Folder string    `json:"-"`    // the folder that hint.Subfolder names, in the source
}

// Error returns the detail. The caller prints the hint on its own line.
func (e *RefusedError) Error() string { return e.Detail }

// Refuse returns a RefusedError. It formats the detail.
func Refuse(h hint.Hint, format string, args ...any) error {
	return &RefusedError{Detail: fmt.Sprintf(format, args...), Hint: h}
}
