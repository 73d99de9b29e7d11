package wire

import "errors"

// The sentinels say what kind of failure an error is; test with errors.Is.
var (
	ErrNotFound         = errors.New("repo not found or private")
	ErrRevisionNotFound = errors.New("revision not found")
	ErrEntryNotFound    = errors.New("file not found in the repo")
	ErrUnauthorized     = errors.New("token refused")
	ErrGated            = errors.New("repo is gated")
	ErrForbidden        = errors.New("not allowed")
	ErrDisabled         = errors.New("repo is disabled")
	ErrQuota            = errors.New("storage quota reached")
	ErrRateLimited      = errors.New("rate limit reached")
	ErrOffline          = errors.New("offline mode is on (HF_HUB_OFFLINE)")
	ErrChanged          = errors.New("file changed on the hub")
	ErrCorrupt          = errors.New("bytes do not match the published hash")
	ErrTooLarge         = errors.New("file is larger than allowed here")
	ErrConflict         = errors.New("branch moved")
	ErrMissingObject    = errors.New("hub does not hold an object that the commit names")
	ErrUnsafePath       = errors.New("unsafe file name")
	ErrNotHub           = errors.New("answer does not come from a hub")
	ErrStalled          = errors.New("connection stalled")
	ErrInvalidCard      = errors.New("model card is not valid")
	ErrTrustedPublisher = errors.New("no token by trusted publishing")
)

// What a request may end with on its way; callers of the API see the first three only if no repeat has helped.
var (
	ErrExpired   = errors.New("signed link expired")
	ErrBadRange  = errors.New("server sent other bytes than asked for")
	ErrBusy      = errors.New("the hub is busy with another change") // of ours; it passes
	ErrStale     = errors.New("upload link refused")                 // ask for new ones
	ErrNoETag    = errors.New("the storage acknowledged a part without an ETag")
	errNoAnswer  = errors.New("connection closed without an answer") // in place of io.EOF, which readers take for a file's end
	errLocalBody = errors.New("the file to send cannot be read")     // the network is not at fault
	ErrBadURL    = errors.New("unreadable URL")
)
