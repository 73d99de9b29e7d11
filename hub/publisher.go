package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Publisher is a job of a CI system that a hub trusts instead of a stored token. Its identity is a token that the CI signs and
// that lasts for minutes. It is exchanged (RFC 8693) for a token of the hub that lasts for an hour, again and again as long as
// the job runs.
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

// login has the token of a client.
type login struct {
	t    *transport
	lock lock // guards what a Publisher got last

	got   string
	renew time.Time
}

// token gives the token to send, "" for none. A Publisher's holds for a while; one request gets it for all.
func (l *login) token(ctx context.Context) (token string, err error) {
	opt := &l.t.opt
	if opt.Publisher == nil {
		return opt.Token, nil
	}
	err = l.lock.hold(ctx, func() error {
		if l.got == "" || !opt.Clock.Now().Before(l.renew) {
			got, lasts, err := l.exchange(ctx, opt.Publisher)
			if err != nil {
				return err
			}
			l.got, l.renew = got, opt.Clock.Now().Add(max(lasts-renewalMargin, lasts/2))
		}
		token = l.got
		return nil
	})
	return token, err
}

// exchange gets a token of the hub for the job's identity.
func (l *login) exchange(ctx context.Context, p *Publisher) (token string, lasts time.Duration, err error) {
	t, identity := l.t, p.Identity
	if identity == "" {
		if identity, err = l.askGitHub(ctx, p); err != nil {
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
	if err = l.ask(ctx, r, &answer); err != nil {
		return "", 0, err
	}
	if answer.Token == "" || !sendable(answer.Token) {
		return "", 0, t.errorf(r.op, ErrNotHub, "the answer holds no token")
	}
	return answer.Token, seconds(cmp.Or(max(0, answer.Seconds), 3600)), nil
}

// askGitHub gets the job's identity, made out to the hub.
func (l *login) askGitHub(ctx context.Context, p *Publisher) (string, error) {
	const op = "ask GitHub for the identity of this job"
	t := l.t
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
	err = l.ask(ctx, r, &answer)
	if err == nil && answer.Value == "" {
		err = t.errorf(op, ErrTrustedPublisher, "the answer holds none")
	}
	return answer.Value, err
}

// ask makes a call of the exchange. A refusal means that the job is not trusted.
func (l *login) ask(ctx context.Context, r *request, out any) error {
	_, err := l.t.call(ctx, r, out)
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 400 && e.Status < 500 && !e.Temporary() {
		return e.as(ErrTrustedPublisher)
	}
	return err
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
