package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Limits of the retry loop.
const (
	maxTries       = 8 // without progress, and more while a host is gone
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	longestQuota   = 10 * time.Minute // between two looks whether a quota of unknown length is over
	outagePatience = 5 * time.Minute  // with a host that is gone
	maxWait        = 90 * time.Minute // of all waits of one call; covers an hourly quota
)

// GaveUp marks an error on which a loop has already spent its tries, so that an outer loop does not multiply them.
type GaveUp struct{ err error }

func (g *GaveUp) Error() string { return g.err.Error() }
func (g *GaveUp) Unwrap() error { return g.err }

// Retry is the retry loop of all requests. It repeats try while its error is temporary, waits as the server asks or with
// full jitter, and gives up when neither tries nor patience are left, after the total wait, or at the end of ctx.
func (t *Transport) Retry(ctx context.Context, r *Request, try func(context.Context) error) error {
	if r.Repo != "" {
		if err := CheckRepo(r.Repo); err != nil { // the id must not go into a URL
			return err
		}
	}
	var waited time.Duration
	failures, attempts, start, failing := 0, 0, t.Opt.Clock.Now(), time.Time{}
	for {
		begun := t.Opt.Clock.Now()
		r.Progress = false
		err := try(ctx)
		r.Slot.giveBack()
		attempts++
		if err == nil {
			t.pauses.over()
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Progress {
			failures = 0
		}
		if failures++; failures == 1 {
			failing = t.Opt.Clock.Now()
		}
		if errors.Is(err, errTooSlow) {
			failures++ // such a try takes long, and what is this slow for ever is of no use
		}
		if !repeatable(err) {
			return err
		}
		d := t.delay(err, failures)
		tried := failures >= maxTries && t.Opt.Clock.Now().Sub(failing) >= patience(err)
		if tried || waited+d > maxWait {
			return &GaveUp{withAttempts(err, attempts)}
		}
		if e, ok := errors.AsType[*Error](err); ok && t.Opt.Governor.unreached(e) && t.Opt.Clock.Now().Add(d).Sub(start) > firstContact {
			return &GaveUp{withAttempts(e.Under(&noConnection{t.Endpoint.Host, e.Err}), attempts)}
		}
		waited += d
		if err := t.pauseFor(ctx, r, err, Wait{reasonOf(err), d}, t.Opt.Clock.Now().Sub(begun), attempts); err != nil {
			return err
		}
		t.counters.retries.Add(1)
	}
}

// pauseFor waits as w says, after a request in which some time was lost. A wait that the server asked for closes the whole lane.
func (t *Transport) pauseFor(ctx context.Context, r *Request, err error, w Wait, lost time.Duration, attempts int) error {
	t.Opt.Log.Info("hub request repeated", "op", r.Op, "attempt", attempts, "err", w.Reason, "wait", w.For.String())
	e, ok := errors.AsType[*Error](err)
	if ok && (e.Status == http.StatusTooManyRequests || e.wait.known) {
		t.pauses.begin(t.Opt.Governor.pause(t.Opt.Clock.Now(), e.wait.lane, w.For, w.Reason), lost)
		return t.Opt.Governor.wait(ctx, t.pauses, e.wait.lane)
	}
	return t.pauses.pause(ctx, w, lost)
}

// delay is the server's wish plus one second and jitter, or full jitter under a ceiling that doubles.
func (t *Transport) delay(err error, failures int) time.Duration {
	doubled := firstBackoff << min(failures-1, 10)
	share := func(d time.Duration) time.Duration { return time.Duration(t.Jitter() * float64(d)) }
	switch e, ok := errors.AsType[*Error](err); {
	case ok && e.wait.known:
		return min(e.wait.after, maxHeaderWait) + time.Second + share(time.Second)
	case errors.Is(err, ErrExpired) && failures == 1:
		return 0
	case openQuota(err):
		ceiling := min(doubled, longestQuota)
		return ceiling/2 + share(ceiling) // never at once
	}
	return share(min(doubled, longestBackoff))
}

// patience is how long an error is waited for, even if the tries are used up before: a quota that does not say when it is over
// may take an hour, and a host that is gone for minutes must not end hours of work.
func patience(err error) time.Duration {
	e, answered := errors.AsType[*Error](err)
	answered = answered && e.Status != 0
	switch {
	case openQuota(err):
		return maxWait
	case errors.Is(err, errTooSlow), errors.Is(err, ErrBadRange), errors.Is(err, ErrNoETag),
		answered && e.Status < http.StatusInternalServerError:
		return 0 // the host is there
	}
	return outagePatience
}

// openQuota says whether the hub has refused a request for its number without a word about when to come back.
func openQuota(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusTooManyRequests && !e.wait.known
}

// repeatable is the one rule about which requests may be sent again.
func repeatable(err error) bool {
	if IsA[*GaveUp](err) {
		return false
	}
	if errors.Is(err, ErrExpired) || errors.Is(err, ErrBadRange) || errors.Is(err, ErrBusy) {
		return true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Temporary()
	}
	return TemporaryNetwork(err)
}

// withAttempts records how often a request was made.
func withAttempts(err error, n int) error {
	if e, ok := errors.AsType[*Error](err); ok {
		counted := *e
		counted.Attempts = n
		return &counted
	}
	return fmt.Errorf("%w (%d attempts)", err, n)
}

// reasonOf is a short text for logs and progress lines.
func reasonOf(err error) string {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return OneLine(err.Error())
	case errors.Is(err, ErrExpired):
		return ErrExpired.Error() // its 403 would be taken for a matter of rights
	case e.Status == http.StatusTooManyRequests && e.wait.bucket != "":
		return "rate limit of the hub's bucket " + e.wait.bucket + " reached"
	case e.Status == http.StatusTooManyRequests && e.Message != "":
		return "rate limit reached: " + e.Message
	case e.Status == http.StatusTooManyRequests:
		return "rate limit reached"
	case e.Status != 0:
		return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	case e.Err != nil:
		return OneLine(e.Err.Error())
	}
	return "no answer"
}
