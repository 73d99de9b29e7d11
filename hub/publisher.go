package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Publisher is a job of a CI system that a hub trusts instead of a stored token. Its identity, a token that the CI signs and that
// lasts for minutes, is exchanged (RFC 8693) for a token of the hub that lasts for an hour, again and again as long as the job runs.
type Publisher struct {
	Resource string // ns/name: a repo to write to, and nothing else; or a user, whose gated repos can be read
	// Identity is such a token, made beforehand; "" asks GitHub for one each time, at RequestURL with RequestToken.
	Identity, RequestURL, RequestToken string
}

// ForRepo says whether the tokens are for a repo, and not for what a user may read.
func (p *Publisher) ForRepo() bool { return strings.Contains(p.Resource, "/") }

// OnlyRepo is the one repo that the client's token can write to; "" if it is not known to be one.
func (c *Client) OnlyRepo() string {
	if p := c.t.opt.Publisher; p != nil && p.ForRepo() {
		return p.Resource
	}
	return ""
}

// hasToken says whether the hub is asked with a token.
func (o *Options) hasToken() bool { return o.Token != "" || o.Publisher != nil }

// renewalMargin is how long before its end a token is exchanged for the next one: longer than any request waits for its answer.
const renewalMargin = 5 * time.Minute

// login is what a Publisher's client got last.
type login struct {
	lock  lock
	token atomic.Pointer[string]
	renew time.Time // guarded by lock
}

// bearer is the token to send; "" for none.
func (t *transport) bearer() string {
	if t.opt.Publisher == nil {
		return t.opt.Token
	}
	return *t.login.token.Load() // ensureToken was here
}

// ensureToken makes sure that a Publisher's client has a token that holds for a while. One request gets it for all.
func (t *transport) ensureToken(ctx context.Context) error {
	p, l := t.opt.Publisher, &t.login
	if p == nil {
		return nil
	}
	return l.lock.hold(ctx, func() error {
		if l.token.Load() != nil && t.opt.Clock.Now().Before(l.renew) {
			return nil
		}
		token, lasts, err := t.exchangeIdentity(ctx, p)
		if err != nil {
			return err
		}
		l.token.Store(&token)
		l.renew = t.opt.Clock.Now().Add(max(lasts-renewalMargin, lasts/2))
		return nil
	})
}

// exchangeIdentity gets a token of the hub for the job's identity.
func (t *transport) exchangeIdentity(ctx context.Context, p *Publisher) (token string, lasts time.Duration, err error) {
	identity := p.Identity
	if identity == "" {
		if identity, err = t.askGitHub(ctx, p); err != nil {
			return "", 0, err
		}
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	r := send("exchange the identity of this job for a token for "+p.Resource, "", http.MethodPost, t.endpoint.String()+"/oauth/token",
		map[string]string{
			"grant_type":         "urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
			"subject_token":      identity, "resource": p.Resource,
		})
	r.token = false
	_, err = t.call(ctx, r, &answer)
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 400 && e.Status < 500 && !e.Temporary() {
		return "", 0, e.as(ErrTrustedPublisher)
	}
	if err != nil {
		return "", 0, err
	}
	if answer.Token == "" || !sendable(answer.Token) {
		return "", 0, t.errorf(r.op, ErrNotHub, "the answer holds no token")
	}
	return answer.Token, seconds(cmp.Or(max(0, answer.Seconds), 3600)), nil
}

// askGitHub gets the job's identity, made out to the hub.
func (t *transport) askGitHub(ctx context.Context, p *Publisher) (string, error) {
	const op = "ask GitHub for the identity of this job"
	u, err := url.Parse(p.RequestURL)
	if err != nil {
		return "", t.errorf(op, errBadURL, "ACTIONS_ID_TOKEN_REQUEST_URL")
	}
	q := u.Query()
	q.Set("audience", t.endpoint.String())
	u.RawQuery = q.Encode()
	r := get(op, "", u.String())
	r.token, r.header = false, http.Header{"Authorization": {"Bearer " + p.RequestToken}, "Accept": {"application/json"}}
	var answer struct {
		Value string `json:"value"`
	}
	_, err = t.call(ctx, r, &answer)
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 400 && e.Status < 500 && !e.Temporary() {
		return "", e.as(ErrTrustedPublisher)
	}
	if err == nil && answer.Value == "" {
		err = t.errorf(op, ErrTrustedPublisher, "the answer holds none")
	}
	return answer.Value, err
}

// publisherOf reads from the environment whom a hub is to trust; nil if it is to trust nobody. The variables are those of the
// Python client.
func publisherOf(getenv func(string) string) (*Publisher, error) {
	p := &Publisher{
		Resource: strings.TrimSpace(getenv("HF_OIDC_RESOURCE")), Identity: cleanToken(getenv("HF_OIDC_ID_TOKEN")),
		RequestURL: getenv("ACTIONS_ID_TOKEN_REQUEST_URL"), RequestToken: getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
	}
	switch {
	case p.Resource == "":
		return nil, nil //nolint:nilnil // as promised
	case p.Identity == "" && (p.RequestURL == "" || p.RequestToken == ""):
		return nil, fmt.Errorf("%w: HF_OIDC_RESOURCE is set, but this job has no identity to show", ErrTrustedPublisher)
	}
	return p, nil
}
