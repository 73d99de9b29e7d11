package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// clients are the clients of the Hubs in use, by side, "source" or "target". Each call makes its own
// of them.
type clients struct {
	mu       sync.Mutex
	governor *hub.Governor
	bySide   map[string]*hub.Client
}

// Client returns a client of a side, "source" or "target", like that of a conversion with these
// options.
func (o *Options) Client(side string) (*hub.Client, error) {
	c, err := o.client(side)
	return c, described(err)
}

func (o *Options) client(side string) (*hub.Client, error) {
	shares, err := o.Means.memory()
	if err != nil {
		return nil, err
	}
	o.Means.complete()
	if err := o.Means.check(); err != nil {
		return nil, err
	}
	return o.Means.client(side, shares)
}

// client returns a client for a call with these means.
func (m *Means) client(side string, shares budget.Memory) (*hub.Client, error) {
	c, err := m.Hubs.client(side)
	if err != nil {
		return nil, err
	}
	return c.With(m.call(shares))
}

// call returns the name, log, notice, and memory with which clients ask. Each side may use the whole
// share of memory for transfers.
func (m *Means) call(shares budget.Memory) hub.Call {
	return hub.Call{UserAgent: "df11-convert/" + m.Version, Log: m.Log,
		RangeBytes: shares.RangeBytes, BufferBytes: shares.AheadBytes, OnWait: func(w hub.Wait) {
			m.say("waiting %s for %s: %s", max(time.Second, w.For.Round(time.Second)), w.Host,
				w.Reason)
		}}
}

// client returns the client of a side that all calls share. A call asks with a client made from it.
func (h *Hubs) client(side string) (*hub.Client, error) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if c := h.shared.bySide[side]; c != nil {
		return c, nil
	}
	opt, err := h.options(side)
	if err != nil {
		return nil, err
	}
	c, err := hub.New(opt)
	if err != nil {
		return nil, hint.On(usage.Of(err), fixOptions(err,
			cmp.Or(opt.EndpointSource, "Hubs.Options.Endpoint"),
			cmp.Or(opt.TokenSource, "Hubs.Options.Token")))
	}
	if h.shared.bySide == nil {
		h.shared.bySide = map[string]*hub.Client{}
	}
	h.shared.bySide[side] = c
	return c, nil
}

// closeIdle closes the connections that no request uses.
func (h *Hubs) closeIdle() {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	for _, c := range h.shared.bySide {
		c.CloseIdle()
	}
}

// options returns the options of a side, from the environment, which it reads as Python does.
func (h *Hubs) options(side string) (hub.Options, error) {
	var opt hub.Options
	var err error
	switch {
	case side == "target" && h.Target != nil:
		opt = *h.Target
	case h.Options != nil:
		opt = *h.Options
	default:
		opt, err = hub.Environ(os.Getenv, homeDir())
	}
	if to := strings.TrimRight(os.Getenv(address.PushEndpoint), "/"); to != "" && h.Options == nil {
		if side == "target" {
			opt.Endpoint, opt.EndpointSource = to, address.PushEndpoint
		} else if to != opt.Endpoint { // with two Hubs, only the target's gets the token
			opt.TokenFile = ""
			opt.Token, opt.TokenSource, opt.Login = "", "", hint.TwoHubs.With("variable", address.PushEndpoint).String()
		}
	}
	if p := opt.Publisher; p != nil && p.ForRepo() != (side == "target") {
		// Its token is only for writing to one repo, or only for reading as a user.
		// The other side uses the stored token.
		opt.Publisher = nil
	}
	if err != nil {
		return opt, err
	}
	if h.shared.governor == nil {
		h.shared.governor = hub.NewGovernor()
	}
	opt.Side, opt.Governor = side, h.shared.governor
	opt.LimitRate, opt.Patience = h.RateLimit, h.Patience
	return opt, nil
}

// fixOptions says which setting of the user's a client can't use, and how to write it.
func fixOptions(err error, variable, tokenSource string) hint.Hint {
	e, ok := errors.AsType[*hub.EndpointError](err)
	switch {
	case errors.Is(err, hub.ErrEndpointParts):
		return hint.EndpointUser.With("variable", variable)
	case !ok && strings.HasPrefix(tokenSource, "file "):
		return hint.BadTokenFile.With("file", strings.TrimPrefix(tokenSource, "file "))
	case !ok:
		return hint.BadToken.With("variable", tokenSource)
	case strings.Contains(e.Endpoint, "://"), strings.ContainsAny(e.Endpoint, " @"):
		return hint.Endpoint.With("variable", variable)
	}
	return hint.NoScheme.With("variable", variable, "endpoint", e.Endpoint)
}

// repo splits a Hub id into repo and revision ("" if it has none), and returns the client for it.
// Errors name the id.
func (s *session) repo(side, id string) (c *hub.Client, repo, revision string, err error) {
	a, err := address.Parse(id)
	if err != nil {
		return nil, "", "", err
	}
	if names.CheckNewRepo(a.Repo) != nil {
		return nil, "", "", hintPath(address.NotFound(a.ID()), id)
	}
	c, err = s.client(side)
	return c, a.Repo, a.Revision, err
}

// client returns the session's client of a side.
func (s *session) client(side string) (*hub.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.bySide[side]; c != nil {
		return c, nil
	}
	c, err := s.Means.client(side, s.shares)
	if err != nil {
		return nil, err
	}
	if s.bySide == nil {
		s.bySide = map[string]*hub.Client{}
	}
	s.bySide[side] = c
	return c, nil
}

// homeDir returns the user's home. Without HOME, as in some services, it asks the user database.
// The shared folder for temporary files is the last resort, because other users could put a token
// or a cache there.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	if me, err := user.Current(); err == nil && me.HomeDir != "" {
		return me.HomeDir
	}
	return os.TempDir() // as in a container whose user has no name
}

// say passes on a line for people.
func (m *Means) say(format string, args ...any) {
	if m.Notice != nil {
		m.Notice(fmt.Sprintf(format, args...))
	}
}
