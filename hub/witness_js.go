//go:build js

package hub

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/names"
)

// Witness does nothing: a browser can't listen, and publishes nothing.
func (*Client) Witness(context.Context, string, string, []names.File, ...string) error { return nil }
