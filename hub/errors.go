package hub

import "github.com/df11-convert/df11-convert/hub/internal/wire"

// Error is a request that failed: what was asked, of whom, and what came back.
type Error = wire.Error

// The sentinels say what kind of failure an error is; test with errors.Is.
var (
	ErrNotFound         = wire.ErrNotFound
	ErrRevisionNotFound = wire.ErrRevisionNotFound
	ErrEntryNotFound    = wire.ErrEntryNotFound
	ErrUnauthorized     = wire.ErrUnauthorized
	ErrGated            = wire.ErrGated
	ErrForbidden        = wire.ErrForbidden
	ErrDisabled         = wire.ErrDisabled
	ErrQuota            = wire.ErrQuota
	ErrRateLimited      = wire.ErrRateLimited
	ErrOffline          = wire.ErrOffline
	ErrChanged          = wire.ErrChanged
	ErrCorrupt          = wire.ErrCorrupt
	ErrConflict         = wire.ErrConflict
	ErrMissingObject    = wire.ErrMissingObject
	ErrUnsafePath       = wire.ErrUnsafePath
	ErrNotHub           = wire.ErrNotHub
	ErrInvalidCard      = wire.ErrInvalidCard
	ErrTrustedPublisher = wire.ErrTrustedPublisher
)

// Hint gives the next step for the user, one sentence or two, or "" when there is none to give.
func Hint(err error) string { return wire.Hint(err) }
