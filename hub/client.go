package hub

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// What a stream fetches where nothing is set.
const (
	DefaultRangeBytes = wire.DefaultRangeBytes // asked for at a time
	RangesAhead       = wire.RangesAhead       // ranges that all streams together fetch ahead
)

type (
	// Options configure a Client.
	Options = wire.Options
	// Governor slows all clients that share it.
	Governor = wire.Governor
	// Publisher gets tokens by trusted publishing.
	Publisher = wire.Publisher
	// Wait is a pause that people should hear of.
	Wait = wire.Wait
	// Clock tells the time, and waits.
	Clock = wire.Clock
)

// NewGovernor makes one that knows of no limit yet.
func NewGovernor() *Governor { return wire.NewGovernor() }

// Client talks to one hub with one token. All methods may be called by many goroutines at once.
type Client struct {
	t     *wire.Transport
	cache *sharedCache
	files *downloads
	puts  *semaphore.Weighted    // running uploads
	turns turns                  // of the files to upload
	user  atomic.Pointer[string] // the answer of WhoAmI
}

// New checks the options. It makes no request.
func New(opt Options) (*Client, error) {
	t, err := wire.New(opt)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	transfers := min(wire.Transfers, max(1, t.Opt.BufferBytes/t.Opt.RangeBytes))
	return &Client{
		t: t, cache: &sharedCache{t: t}, files: newDownloads(t, transfers),
		puts: semaphore.NewWeighted(transfers), turns: turns{files: semaphore.NewWeighted(allTurns)},
	}, nil
}

// Endpoint is the hub's address, without trailing slash.
func (c *Client) Endpoint() string { return c.t.Endpoint.String() }

// Pause waits by the client's clock; the reason is told like that of any wait.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.Pause(ctx, reason, d)
}

// OnlyRepo is the one repo that the client's token can write to; "" if it is not known to be one.
func (c *Client) OnlyRepo() string {
	if p := c.t.Opt.Publisher; p != nil && p.ForRepo() {
		return p.Resource
	}
	return ""
}

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
