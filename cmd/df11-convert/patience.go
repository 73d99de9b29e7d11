package main

import (
	"context"
	"errors"
	"time"

	"github.com/df11-convert/df11-convert/hub"
)

// A listPatience repeats what a list does for one of its models, while that fails for reasons that say
// nothing about the model.
type listPatience struct {
	f *convertFlags
	u *ui
	// something has worked already: else a setting is wrong, and people are waiting
	worked bool
	listed bool   // the Hub has just listed the model's repos
	other  string // another model of the list, or ""
}

// other returns another model of a list than the i-th, or "".
func other(models []listedModel, i int) string {
	if len(models) < 2 {
		return ""
	}
	return models[(i+1)%len(models)].Source
}

// outagePatience is how long a list waits while the network, the Hub, or the token fails, as a single
// request does. What the model's requests have waited counts.
const outagePatience = 5 * time.Minute

// outageWaits are the first waits between tries of one model. The last one repeats.
var outageWaits = []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute}

// try repeats what a list does for the model until that works, or fails because of the model, or the
// patience is used up. alike reports whether the other models would fail, too.
func (p listPatience) try(ctx context.Context, once func() error) (alike bool, err error) {
	var waited time.Duration
	for i := 0; ; i++ {
		err := once()
		waited = max(waited, hub.Away(err))
		about, alike := p.culprit(ctx, err)
		if about == "" || !p.worked || waited >= outagePatience || ctx.Err() != nil ||
			errors.Is(err, hub.ErrForbidden) { // a token for reading stays one
			return alike, err
		}
		c, clientErr := p.client(err)
		if clientErr != nil {
			return alike, clientErr
		}
		d := outageWaits[min(i, len(outageWaits)-1)]
		waited += d
		if err := c.Pause(ctx, about+" fails, not the model: "+hub.Brief(err), d); err != nil {
			return alike, err
		}
	}
}

// culprit says what fails instead of the model, or "", and whether that ends the list.
func (p listPatience) culprit(ctx context.Context, err error) (about string, alike bool) {
	if about = hub.Culprit(err); about != "" {
		return about, true
	}
	e, ok := errors.AsType[*hub.Error](err)
	switch {
	case p.listed && errors.Is(err, hub.ErrNotFound):
		return "the Hub", false
	case !ok || !e.GaveUp() || !e.Temporary() || p.other == "":
		return "", false
	}
	// Some hubs refuse one repo with 500 and a reason, and the Hub itself gives a reason when all of
	// it fails. So ask for another repo.
	c, clientErr := p.client(err)
	if clientErr != nil {
		return "", false
	}
	_, err = c.Head(ctx, p.other, "main")
	if e, ok := errors.AsType[*hub.Error](err); ok && (e.Temporary() || hub.Culprit(err) != "") {
		return "the Hub", true
	}
	return "", false
}

// client returns the client whose request failed.
func (p listPatience) client(err error) (*hub.Client, error) {
	side := "source"
	if e, ok := errors.AsType[*hub.Error](err); ok && e.Side != "" {
		side = e.Side
	}
	return p.f.client(p.u, side)
}
