package hub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

// A Publisher is a CI job that a hub trusts instead of a stored token. Its identity is a token that
// the CI signs and that lasts minutes. The job exchanges it (RFC 8693) for a token of the hub that
// lasts an hour, again and again while it runs.
type Publisher struct {
	// ns/name for writing to that repo only, or a user, for reading what the user may read
	Resource string
	// Identity is a ready-made identity. If it's "", the job asks GitHub for one each time, at
	// RequestURL with RequestToken.
	Identity, RequestURL, RequestToken string
}

// Format writes only the resource: the rest is secret.
func (p *Publisher) Format(w fmt.State, verb rune) {
	if p == nil {
		fmt.Fprint(w, "<nil>")
		return
	}
	fmt.Fprintf(w, fmt.FormatString(w, verb), p.Resource)
}

// LogValue returns only the resource.
func (p *Publisher) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(p)) }

// ForRepo reports whether the tokens are for writing to a repo.
func (p *Publisher) ForRepo() bool { return strings.Contains(p.Resource, "/") }

// renewalMargin is how long before its end a token is replaced: longer than any request waits for
// its answer.
const renewalMargin = 5 * time.Minute

// A login gets tokens for a Publisher.
type login struct {
	*Publisher
	lock *semaphore.Weighted // of one; guards the latest token

	got   string
	renew time.Time
}

// token returns the token to send, which t may ask for. One request gets it for all others.
func (l *login) token(ctx context.Context, t *transport) (string, error) {
	if err := takePlace(ctx, l.lock); err != nil {
		return "", err
	}
	defer l.lock.Release(1)
	if l.got == "" || !t.opt.Clock.Now().Before(l.renew) {
		got, lasts, err := l.exchange(ctx, t)
		if err != nil {
			return "", err
		}
		l.got, l.renew = got, t.opt.Clock.Now().Add(max(lasts-renewalMargin, lasts/2))
	}
	return l.got, nil
}

// exchange gets a token of the hub for the job's identity.
func (l *login) exchange(ctx context.Context, t *transport) (token string, lasts time.Duration,
	err error) {
	identity := l.Identity
	if identity == "" {
		if identity, err = l.askGitHub(ctx, t); err != nil {
			return "", 0, err
		}
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	r := sendRequest("exchange the identity of this job for a token for "+l.Resource, "", http.MethodPost,
		t.endpoint.String()+"/oauth/token",
		map[string]string{
			"grant_type":         "urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
			"subject_token":      identity, "resource": l.Resource,
		})
	r.token = false
	if err = ask(ctx, t, r, &answer); err != nil {
		return "", 0, err
	}
	if answer.Token == "" || !sendable(answer.Token) {
		return "", 0, t.errorf(r.op, ErrNotHub, "the answer holds no token")
	}
	lasts = max(0, time.Duration(answer.Seconds)*time.Second)
	return answer.Token, cmp.Or(lasts, time.Hour), nil
}

// askGitHub gets the job's identity, issued for the hub:
// https://docs.github.com/en/actions/reference/security/oidc.
func (l *login) askGitHub(ctx context.Context, t *transport) (string, error) {
	r := getRequest("ask GitHub for the identity of this job", "",
		l.RequestURL+"&audience="+url.QueryEscape(t.endpoint.String()))
	r.token, r.header = false, http.Header{"Authorization": {"Bearer " + l.RequestToken},
		"Accept": {"application/json"}}
	var answer struct {
		Value string
	}
	err := ask(ctx, t, r, &answer)
	if err == nil && answer.Value == "" {
		err = t.errorf(r.op, ErrTrustedPublisher, "the answer holds none")
	}
	return answer.Value, err
}

// ask makes a call of the exchange. A refusal means that the job isn't trusted.
func ask(ctx context.Context, t *transport, r *request, out any) error {
	_, err := t.call(ctx, r, out)
	if e := errorOf(err); e.Status >= 400 && e.Status < 500 &&
		!e.Temporary() {
		return e.under(ErrTrustedPublisher)
	}
	return err
}
