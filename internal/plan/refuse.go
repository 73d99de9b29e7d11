package plan

import (
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// RefusedError says that a source can't be converted as asked.
type RefusedError = catalog.RefusedError

// IsDF11 is RefusedError.Next of a source that is a DF11 model.
const IsDF11 = "check_instead"

// refuseDF11 refuses a source that is a DF11 model.
func refuseDF11(detail string) error {
	return &RefusedError{Detail: detail, Hint: hint.IsDF11, Next: IsDF11}
}

// unknown refuses a name that the user gave and that the source or the catalog doesn't have: the
// user's mistake, not the source's.
func unknown(h hint.Hint, format string, args ...any) error {
	return usage.Of(refuse(h, format, args...))
}

// refuse returns a RefusedError. It formats the detail.
func refuse(h hint.Hint, format string, args ...any) error {
	return catalog.Refuse(h, format, args...)
}
