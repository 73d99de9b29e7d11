package hub

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// firstContact is how long a program tries to reach the hub at all. Usually there's no network, or
// a name is wrong, and people are waiting. Once the hub has answered anything, an outage is just a
// wait in hours of work.
const firstContact = 5 * time.Second

// Limits of the retry loop.
const (
	maxTries       = 8 // without progress
	maxPages       = 2 // web pages instead of the hub's answer, as from a captive portal (RFC 8952)
	maxSame        = 5 // for the same answer
	maxLost        = 2 // from a host that has been away for longer than outagePatience
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	longestQuota   = 10 * time.Minute // between two tries, if the hub doesn't say how long
	// even if the tries are used up: a host that's gone for minutes must not end hours of work
	outagePatience = 5 * time.Minute
	// after the first failure, from a host that has never sent a byte. A try lasts half a minute
	// until then, so that's two minutes of silence. A firewall that drops packets won't stop.
	silentPatience = 90 * time.Second
	maxWait        = 90 * time.Minute // all waits of one call; covers an hourly quota
)

// retry is the retry loop of all requests. It repeats try while the error is temporary. It waits as
// the server asks, or with full jitter. It gives up when tries and patience are used up, when all
// waits take longer than Patience, or when ctx ends.
func (t *transport) retry(ctx context.Context, r *request, try func(context.Context) error) error {
	if r.repo != "" {
		if err := checkRepo(r.repo); err != nil { // a bad id must not get into a URL
			return err
		}
	}
	ctx, waited := withWaits(ctx)
	now := t.opt.Clock.Now
	failures, attempts, start, failing := 0, 0, now(), time.Time{}
	same, words, renewed := 0, "", false
	for {
		err := try(ctx)
		if attempts++; err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, ok := errors.AsType[*Error](err)
		if ok && e.sent != "" && t.refused != nil && !renewed {
			if renewed, e.advice = t.refused(ctx, t, e.sent); renewed {
				continue
			}
		}
		if !ok || !e.Temporary() || e.GaveUp() {
			return err
		}
		if e.progress {
			failures = 0
		}
		if failures++; failures == 1 {
			failing = now()
		}
		if same++; e.reason() != words || e.progress {
			same, words = 1, e.reason()
		}
		e = e.failing(max(now().Sub(failing), t.away(e)))
		d := t.delay(e, failures)
		switch {
		case r.noRepeat, same >= maxSame && t.insists(r, e), waited.total()+d > t.opt.Patience:
			return e.after(attempts)
		case failures >= maxPages && errors.Is(e, errPage),
			t.isSilent(r, e) && e.away >= silentPatience,
			failures >= maxTries && e.away >= patience(e),
			failures >= maxLost && t.away(e) >= outagePatience:
			return t.lose(e, attempts)
		case !t.opt.Governor.answered.Load() && (neverBegun(e) || errors.Is(e, errNoAnswer)) &&
			now().Add(d).Sub(start) > firstContact:
			return e.under(&notConnectedError{t.endpoint.Host, e.Err}).after(attempts)
		}
		t.opt.Log.Info("hub request repeated", "op", r.op, "attempt", attempts, "err", e.reason(),
			"wait", d.String())
		err = t.backOff(ctx, e, e.waitReason(failures), d)
		if errors.Is(err, errImpatient) {
			return e.after(attempts)
		} else if err != nil {
			return err
		}
	}
}

// backOff waits between two tries. If the server asked for the wait, the whole lane waits.
func (t *transport) backOff(ctx context.Context, e *Error, reason string, d time.Duration) error {
	if e.Status == http.StatusTooManyRequests || e.timed {
		t.opt.Governor.close(t.opt.Clock.Now(), e.lane, d, reason)
		return t.opt.Governor.wait(ctx, t, e.lane)
	}
	waitsOf(ctx).add(d)
	return t.pause(ctx, cmp.Or(e.lane.host, t.endpoint.Host), reason, d)
}

// delay returns the wait that the server asks for, plus a second and jitter, or full jitter under a
// limit that doubles.
func (t *transport) delay(e *Error, failures int) time.Duration {
	share := func(d time.Duration) time.Duration { return time.Duration(t.jitter() * float64(d)) }
	switch {
	case e.timed:
		return min(e.wait, maxHeaderWait) + time.Second + share(time.Second)
	case errors.Is(e, errExpired) && failures == 1, errors.Is(e, errLagging):
		return 0
	}
	doubled := firstBackoff << min(failures-1, 10)
	if e.isUntimed() {
		ceiling := min(doubled, longestQuota)
		return ceiling/2 + share(ceiling) // never zero
	}
	return share(min(doubled, longestBackoff))
}

// patience returns how long to repeat a failure at least.
func patience(e *Error) time.Duration {
	if e.isUntimed() {
		return maxWait
	}
	return outagePatience
}

// isSilent reports whether a host has never sent a byte, and lets the time run out again: it makes
// no connection, or accepts one and says nothing. What an upload sends may still be on its way.
func (t *transport) isSilent(r *request, e *Error) bool {
	late, ok := errors.AsType[net.Error](e.Err)
	timeout := ok && late.Timeout() || errors.Is(e.Err, errStalled) && r.body == nil
	return timeout && e.lane.host != "" && !t.opt.Governor.hasSpoken(e.lane.host)
}

// insists reports whether the same answer again and again is believed, although it may be
// temporary. CloudFront keeps what it has cached, also if that's without ranges
// (https://github.com/huggingface/huggingface_hub/pull/3778). hfd and KohakuHub refuse with 500 and
// a reason; until file bytes have moved, believing that loses no work.
func (t *transport) insists(r *request, e *Error) bool {
	return errors.Is(e, errBadRange) || e.Status == http.StatusInternalServerError &&
		e.Message != "" && !e.timed && !r.bulk && !t.moved.Load()
}

// isUntimed reports whether e is a 429 that doesn't say when to retry, as the Hub's for its hourly
// quota of commits: https://github.com/huggingface/datasets/issues/6257.
func (e *Error) isUntimed() bool { return e.Status == http.StatusTooManyRequests && !e.timed }

// after returns the error of a request that was given up after so many attempts.
func (e *Error) after(attempts int) *Error {
	last := *e
	last.Attempts = attempts
	return &last
}

// failing returns the error of a request that has failed for so long.
func (e *Error) failing(away time.Duration) *Error {
	last := *e
	last.away = away
	return &last
}

// away returns for how long the host of a failure has served nothing. A limit isn't an outage.
func (t *transport) away(e *Error) time.Duration {
	if e.lane.host == "" || e.Status == http.StatusTooManyRequests {
		return 0
	}
	return t.opt.Governor.away(e.lane.host, t.opt.Clock.Now())
}

// lose gives up on the host of a request. A storage host that never served
// anything, while the Hub answers, is probably blocked: a firewall that lets huggingface.co through
// and not its storage is common, and https://huggingface.co/docs/hub/models-downloading lists the
// hosts for that reason.
func (t *transport) lose(e *Error, attempts int) *Error {
	host, served := e.lane.host, t.opt.Governor.hasServed(e.lane.host)
	if errors.Is(e, errExpired) {
		e = e.under(errLinks)
	}
	e = e.after(attempts)
	if e.lane.isStorage() && !served && e.Status < http.StatusInternalServerError {
		e.advice = hint.Firewall.With("host", host)
	}
	return e
}

// waitReason returns why to wait after so many failures.
func (e *Error) waitReason(failures int) string {
	if errors.Is(e, errExpired) && failures > 1 { // a new link
		return errLinks.Error()
	}
	if e.Status == 0 && e.Err != nil {
		return inWords(e.Err)
	}
	return e.reason()
}

// reason returns a short text for logs and progress lines.
func (e *Error) reason() string {
	switch {
	case errors.Is(e, errExpired), errors.Is(e, errPage):
		return e.Err.Error() // its 403 would look like a missing right
	case e.Status == http.StatusTooManyRequests:
		return join(": ", "rate limit reached", e.Message)
	case e.Status != 0:
		return join(": ", e.status(), e.Message)
	case e.Err != nil:
		return oneLine(e.Err.Error())
	}
	return "no answer"
}
