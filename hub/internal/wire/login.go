package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/semaphore"
)

// renewalMargin is how long before its end a token is exchanged for the next one: longer than any
// request waits for its answer.
const renewalMargin = 5 * time.Minute

// login has the token of a client.
type login struct {
	t    *Transport
	lock *semaphore.Weighted // of one; guards what a Publisher got last

	got   string
	renew time.Time
}

// token gives the token to send, "" for none. A Publisher's holds for a while; one request gets it
// for all.
func (l *login) token(ctx context.Context) (string, error) {
	if l.t.Opt.Publisher == nil {
		return l.t.Opt.Token, nil
	}
	if err := Take(ctx, l.lock); err != nil {
		return "", err
	}
	defer l.lock.Release(1)
	if l.got == "" || !l.t.Opt.Clock.Now().Before(l.renew) {
		got, lasts, err := l.exchange(ctx, l.t.Opt.Publisher)
		if err != nil {
			return "", err
		}
		l.got, l.renew = got, l.t.Opt.Clock.Now().Add(max(lasts-renewalMargin, lasts/2))
	}
	return l.got, nil
}

// exchange gets a token of the hub for the job's identity.
func (l *login) exchange(ctx context.Context,
	p *Publisher) (token string, lasts time.Duration, err error) {
	identity := p.Identity
	if identity == "" {
		if identity, err = l.askGitHub(ctx, p); err != nil {
			return "", 0, err
		}
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	r := Send("exchange the identity of this job for a token for "+p.Resource, "", http.MethodPost,
		l.t.Endpoint.String()+"/oauth/token",
		map[string]string{
			"grant_type":         "urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
			"subject_token":      identity, "resource": p.Resource,
		})
	r.Token = false
	if err = l.ask(ctx, r, &answer); err != nil {
		return "", 0, err
	}
	if answer.Token == "" || !sendable(answer.Token) {
		return "", 0, l.t.Errorf(r.Op, ErrNotHub, "the answer holds no token")
	}
	return answer.Token, seconds(cmp.Or(max(0, answer.Seconds), 3600)), nil
}

// askGitHub gets the job's identity, made out to the hub.
func (l *login) askGitHub(ctx context.Context, p *Publisher) (string, error) {
	const op = "ask GitHub for the identity of this job"
	u, err := url.Parse(p.RequestURL)
	if err != nil {
		return "", l.t.Errorf(op, ErrBadURL, "ACTIONS_ID_TOKEN_REQUEST_URL")
	}
	q := u.Query()
	q.Set("audience", l.t.Endpoint.String())
	u.RawQuery = q.Encode()
	r := Get(op, "", u.String())
	r.Token, r.Header = false, http.Header{"Authorization": {"Bearer " + p.RequestToken},
		"Accept": {"application/json"}}
	var answer struct {
		Value string `json:"value"`
	}
	err = l.ask(ctx, r, &answer)
	if err == nil && answer.Value == "" {
		err = l.t.Errorf(op, ErrTrustedPublisher, "the answer holds none")
	}
	return answer.Value, err
}

// ask makes a call of the exchange. A refusal means that the job is not trusted.
func (l *login) ask(ctx context.Context, r *Request, out any) error {
	_, err := l.t.Call(ctx, r, out)
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 400 && e.Status < 500 &&
		!e.Temporary() {
		return e.Under(ErrTrustedPublisher)
	}
	return err
}
