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
	maxTries       = 8 // without progress
	maxSame        = 5 // for the same 500 with the same words
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	longestQuota   = 10 * time.Minute // between two looks whether a limit of unknown length is over
	// even if the tries are used up: a host that is gone for minutes must not end hours of work
	outagePatience = 5 * time.Minute
	maxWait        = 90 * time.Minute // of all waits of one call; covers an hourly quota
)

// Retry is the retry loop of all requests. It repeats try while its error is temporary, waits as
// the server asks or with full jitter, and gives up when neither tries nor patience are left, after
// the total wait, or at the end of ctx.
func (t *Transport) Retry(ctx context.Context, r *Request, try func(context.Context) error) error {
	if r.Repo != "" {
		if err := CheckRepo(r.Repo); err != nil { // the id must not go into a URL
			return err
		}
	}
	var waited time.Duration
	now := t.Opt.Clock.Now
	defer r.Slot.giveBack()
	failures, attempts, start, failing := 0, 0, now(), time.Time{}
	same, words := 0, ""
	for {
		err := try(ctx)
		if attempts++; !errors.Is(err, ErrLagging) {
			r.Slot.giveBack()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Temporary() || e.GaveUp() {
			return err
		}
		if e.Progress {
			failures = 0
		}
		if failures++; failures == 1 {
			failing = now()
		}
		if same++; !e.insists() || e.Message != words {
			same, words = 1, e.Message
		}
		d := t.delay(e, failures)
		switch {
		case same == maxSame && e.insists() && !r.Bulk && !t.moved.Load():
			return e.Under(ErrInsists).after(attempts)
		case failures >= maxTries && now().Sub(failing) >= patience(e), waited+d > maxWait:
			return e.after(attempts)
		case !t.Opt.Governor.answered.Load() && NeverBegun(e) &&
			now().Add(d).Sub(start) > firstContact:
			return e.Under(fmt.Errorf("%w to %s: %w", errNoConnection, t.Endpoint.Host,
				e.Err)).after(attempts)
		}
		waited += d
		t.Opt.Log.Info("hub request repeated", "op", r.Op, "attempt", attempts, "err", e.reason(),
			"wait", d.String())
		if err := t.pause(ctx, e, d); err != nil {
			return err
		}
	}
}

// pause waits between two tries. A wait that the server asks for closes the whole lane.
func (t *Transport) pause(ctx context.Context, e *Error, d time.Duration) error {
	if e.Status == http.StatusTooManyRequests || e.wait.known {
		t.Opt.Governor.close(t.Opt.Clock.Now(), e.wait.lane, d, e.reason())
		return t.Opt.Governor.wait(ctx, t, e.wait.lane)
	}
	return t.Pause(ctx, e.reason(), d)
}

// delay is the server's wish plus one second and jitter, or full jitter under a ceiling that
// doubles.
func (t *Transport) delay(e *Error, failures int) time.Duration {
	share := func(d time.Duration) time.Duration { return time.Duration(t.Jitter() * float64(d)) }
	switch {
	case e.wait.known:
		return min(e.wait.after, maxHeaderWait) + time.Second + share(time.Second)
	case errors.Is(e, ErrExpired) && failures == 1, errors.Is(e, ErrLagging):
		return 0
	}
	doubled := firstBackoff << min(failures-1, 10)
	if e.openLimit() {
		ceiling := min(doubled, longestQuota)
		return ceiling/2 + share(ceiling) // never at once
	}
	return share(min(doubled, longestBackoff))
}

// patience is for how long a failure is repeated at least.
func patience(e *Error) time.Duration {
	switch {
	case e.openLimit():
		return maxWait
	case e.Status == http.StatusTooManyRequests:
		return 0 // the hub has named the time, again and again
	}
	return outagePatience
}

// insists says whether an answer may be meant for good although it speaks of trouble: some hubs
// answer 500 to what they refuse, with a reason. Before a client has moved any bytes of files, no
// work is lost by believing it.
func (e *Error) insists() bool {
	return e.Status == http.StatusInternalServerError && e.Message != "" && !e.wait.known
}

// openLimit says whether the hub has refused a request for its number without a word about when to
// come back.
func (e *Error) openLimit() bool { return e.Status == http.StatusTooManyRequests && !e.wait.known }

// after is the error with which the last of so many requests was given up.
func (e *Error) after(attempts int) *Error {
	last := *e
	last.Attempts = attempts
	return &last
}

// reason is a short text for logs and progress lines.
func (e *Error) reason() string {
	switch {
	case errors.Is(e, ErrExpired):
		return ErrExpired.Error() // its 403 would be taken for a matter of rights
	case e.Status == http.StatusTooManyRequests && e.wait.bucket != "":
		return "rate limit of the hub's bucket " + e.wait.bucket + " reached"
	case e.Status == http.StatusTooManyRequests:
		return join(": ", "rate limit reached", e.Message)
	case e.Status != 0:
		return join(": ", e.status(), e.Message)
	case e.Err != nil:
		return OneLine(e.Err.Error())
	}
	return "no answer"
}
