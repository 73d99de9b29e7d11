package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
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
	listed bool // the Hub has just listed the model's repos

	models   []listedModel // the whole list
	at       int           // the model's index
	answered []bool        // whose repos have answered
}

// others returns the list's other models, in the order to ask the Hub about them: first those whose
// repo has answered, then those that follow, then the rest.
func (p listPatience) others() (list []listedModel) {
	for _, first := range []bool{true, false} {
		for j := range len(p.models) - 1 {
			if i := (p.at + 1 + j) % len(p.models); p.answered[i] == first {
				list = append(list, p.models[i])
			}
		}
	}
	return list
}

// maxAsked bounds the repos that the Hub is asked about to find out whether it fails.
const maxAsked = 100

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
			return alike && !p.isOwn(ctx, err), err
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
	case !ok || !e.GaveUp() || !e.Temporary():
		return "", false
	}
	// Some hubs refuse one repo with 500 and a reason, and the Hub itself gives a reason when all of
	// it fails. So ask about the other repos.
	if asked, answers := p.ask(ctx, e); asked && !answers {
		return "the Hub", true
	}
	return "", false
}

// isOwn reports whether a failure that isn't about the model concerns no other repo of the list
// either: the Hub's API refuses this repo, such as by a timeout, and answers for another one.
func (p listPatience) isOwn(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*hub.Error](err)
	c, clientErr := p.client(err)
	if !ok || clientErr != nil || e.Status < http.StatusInternalServerError ||
		hub.Culprit(err) == "" || // culprit has just asked
		!strings.HasPrefix(e.URL, c.Endpoint()+"/") { // a storage host may fail alone
		return false
	}
	_, answers := p.ask(ctx, e)
	return answers
}

// ask asks the Hub of a failed request about the other repos of the list, each one once, until it
// answers. asked reports whether there are others. That a repo isn't there is an answer, too.
func (p listPatience) ask(ctx context.Context, e *hub.Error) (asked, answers bool) {
	c, err := p.client(e)
	if err != nil {
		return false, false
	}
	seen := map[string]bool{strings.ToLower(e.Repo): true, strings.ToLower(p.repo(e.Side, p.models[p.at])): true}
	for _, m := range p.others() {
		repo := p.repo(e.Side, m)
		key := strings.ToLower(repo)
		if repo == "" || seen[key] || len(seen) > maxAsked {
			continue
		}
		seen[key], asked = true, true
		err := c.Probe(ctx, repo)
		failed, ok := errors.AsType[*hub.Error](err)
		if !ok || !failed.Temporary() && hub.Culprit(err) == "" {
			return true, ctx.Err() == nil
		}
		if failed.Status == 0 {
			break // the Hub isn't there
		}
	}
	return asked, false
}

// repo returns the repo of a model on the Hub of a side.
func (p listPatience) repo(side string, m listedModel) string {
	if side == "target" {
		return m.repo
	}
	return m.Source
}

// client returns the client whose request failed.
func (p listPatience) client(err error) (*hub.Client, error) {
	side := "source"
	if e, ok := errors.AsType[*hub.Error](err); ok && e.Side != "" {
		side = e.Side
	}
	return p.f.client(p.u, side)
}
