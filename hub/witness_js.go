//go:build js

package hub

import (
	"context"
)

// Witness does nothing: a browser can't listen, and publishes nothing.
func (*Client) Witness(context.Context, string, string, string, []FileInfo, ...string) error {
	return nil
}
