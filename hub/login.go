package hub

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// Publisher is a job of a CI system that a hub trusts instead of a stored token. Its identity is a
// token that the CI signs and that lasts for minutes. It is exchanged (RFC 8693) for a token of the
// hub that lasts for an hour, again and again as long as the job runs.
type Publisher struct {
	// ns/name: a repo to write to, and nothing else; or a user, whose gated repos can be read
	Resource string
	// Identity is such a token, made beforehand; "" asks GitHub for one each time, at RequestURL
	// with RequestToken.
	Identity, RequestURL, RequestToken string
}

// ForRepo says whether the tokens are for a repo, and not for what a user may read.
func (p *Publisher) ForRepo() bool { return strings.Contains(p.Resource, "/") }

// renewalMargin is how long before its end a token is exchanged for the next one: longer than any
// request waits for its answer.
const renewalMargin = 5 * time.Minute

// login gives the tokens that a Publisher gets.
type login struct {
	*Publisher
	t    *wire.Transport
	lock *semaphore.Weighted // of one; guards the token that was got last

	got   string
	renew time.Time
}

// token gives the token to send. It holds for a while; one request gets it for all.
func (l *login) token(ctx context.Context) (string, error) {
	if err := wire.Take(ctx, l.lock); err != nil {
		return "", err
	}
	defer l.lock.Release(1)
	if l.got == "" || !l.t.Opt.Clock.Now().Before(l.renew) {
		got, lasts, err := l.exchange(ctx)
		if err != nil {
			return "", err
		}
		l.got, l.renew = got, l.t.Opt.Clock.Now().Add(max(lasts-renewalMargin, lasts/2))
	}
	return l.got, nil
}

// exchange gets a token of the hub for the job's identity.
func (l *login) exchange(ctx context.Context) (token string, lasts time.Duration, err error) {
	identity := l.Identity
	if identity == "" {
		if identity, err = l.askGitHub(ctx); err != nil {
			return "", 0, err
		}
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	r := wire.Send("exchange the identity of this job for a token for "+l.Resource, "", http.MethodPost,
		l.t.Endpoint.String()+"/oauth/token",
		map[string]string{
			"grant_type":         "urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
			"subject_token":      identity, "resource": l.Resource,
		})
	r.Token = false
	if err = l.ask(ctx, r, &answer); err != nil {
		return "", 0, err
	}
	if answer.Token == "" || !wire.Sendable(answer.Token) {
		return "", 0, l.t.Errorf(r.Op, wire.ErrNotHub, "the answer holds no token")
	}
	lasts = min(time.Duration(answer.Seconds), 24*3600) * time.Second
	return answer.Token, cmp.Or(max(0, lasts), time.Hour), nil
}

// askGitHub gets the job's identity, made out to the hub.
func (l *login) askGitHub(ctx context.Context) (string, error) {
	const op = "ask GitHub for the identity of this job"
	u, err := url.Parse(l.RequestURL)
	if err != nil {
		return "", l.t.Errorf(op, wire.ErrBadURL, "ACTIONS_ID_TOKEN_REQUEST_URL")
	}
	q := u.Query()
	q.Set("audience", l.t.Endpoint.String())
	u.RawQuery = q.Encode()
	r := wire.Get(op, "", u.String())
	r.Token, r.Header = false, http.Header{"Authorization": {"Bearer " + l.RequestToken},
		"Accept": {"application/json"}}
	var answer struct {
		Value string `json:"value"`
	}
	err = l.ask(ctx, r, &answer)
	if err == nil && answer.Value == "" {
		err = l.t.Errorf(op, wire.ErrTrustedPublisher, "the answer holds none")
	}
	return answer.Value, err
}

// ask makes a call of the exchange. A refusal means that the job is not trusted.
func (l *login) ask(ctx context.Context, r *wire.Request, out any) error {
	_, err := l.t.Call(ctx, r, out)
	if e := wire.ErrorOf(err); e.Status >= 400 && e.Status < 500 &&
		!e.Temporary() {
		return e.Under(wire.ErrTrustedPublisher)
	}
	return err
}
