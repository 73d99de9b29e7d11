package hubtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// WithPublisher makes jobs of a GitHub repository trusted publishers for a resource: a repo,
// ns/name, which their tokens may write to, or a user, whose gated repos they may read. Other
// tokens must then come from WithUser.
func WithPublisher(resource, github string) Option {
	return func(c *config) {
		c.publishers[resource] = github
	}
}

// How long a publisher's tokens last, by the server's clock.
const (
	identityTTL = 10 * time.Minute
	tokenTTL    = time.Hour
)

// trust is what GitHub and the hub know about jobs and logins.
type trust struct {
	mu         sync.Mutex
	identities map[string]identity // by token
	tokens     map[string]issued
	logins     map[string]login // by refresh token
}

type identity struct {
	github, audience string
	ends             time.Time
}

type issued struct {
	user User
	ends time.Time
}

// JobEnv returns the variables with which GitHub lets a job of a repository ask for its identity.
// The server stands in for GitHub.
func (s *Server) JobEnv(github string) map[string]string {
	return map[string]string{
		"GITHUB_ACTIONS":                 "true",
		"ACTIONS_ID_TOKEN_REQUEST_URL":   s.URL + "/_github/" + github + "?api-version=2.0",
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN": jobToken,
	}
}

const jobToken = "github-job-token"

// NewIdentity returns the identity of a job of a GitHub repository, issued for an audience.
func (s *Server) NewIdentity(github, audience string) string {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	token := fmt.Sprintf("eyJ.%d.%s", len(t.identities), strings.ReplaceAll(github, "/", "."))
	t.identities[token] = identity{github, audience, s.cfg.clock().Add(identityTTL)}
	return token
}

// giveIdentity is GitHub's part.
func (s *Server) giveIdentity(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Authorization") != "Bearer "+jobToken {
		return fail(http.StatusUnauthorized, "no job asks")
	}
	id := s.NewIdentity(r.PathValue("owner")+"/"+r.PathValue("name"), r.URL.Query().Get("audience"))
	writeJSON(w, http.StatusOK, map[string]any{"value": id, "count": 1})
	return nil
}

// exchange is POST /oauth/token as trusted publishers use it (RFC 8693). Like the real hub, it
// doesn't say why a grant is invalid.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) error {
	q, err := readJSON[struct {
		GrantType        string `json:"grant_type"`
		SubjectTokenType string `json:"subject_token_type"`
		SubjectToken     string `json:"subject_token"`
		Resource         string `json:"resource"`
	}](r)
	if err != nil {
		return err
	}
	refuse := func(code, why string) error {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": why})
		return nil
	}
	if q.GrantType != "urn:ietf:params:oauth:grant-type:token-exchange" ||
		q.SubjectTokenType != "urn:ietf:params:oauth:token-type:id_token" ||
		q.SubjectToken == "" || q.Resource == "" || r.Header.Get("Authorization") != "" {
		return refuse("invalid_request", "Malformed token exchange")
	}
	t, now := &s.trust, s.cfg.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	id, known := t.identities[q.SubjectToken]
	if !known || now.After(id.ends) || id.audience != s.URL ||
		s.cfg.publishers[q.Resource] != id.github {
		return refuse("invalid_grant", "Token exchange failed")
	}
	user := User{Name: "[OIDC]", ReadOnly: true}
	for _, u := range s.cfg.users {
		if u.Name == q.Resource {
			user.Granted = u.Granted
		}
	}
	if strings.Contains(q.Resource, "/") {
		user = User{Name: "[OIDC]", Only: q.Resource}
	}
	token := fmt.Sprintf("hf_jwt_%d", len(t.tokens))
	t.tokens[token] = issued{user, now.Add(tokenTTL)}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "bearer", "expires_in": int(tokenTTL.Seconds()),
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
	})
	return nil
}

// userOf returns the user a token was issued for, or nil if it's unknown or expired.
func (t *trust) userOf(token string, now time.Time) *User {
	t.mu.Lock()
	defer t.mu.Unlock()
	if got, ok := t.tokens[token]; ok && now.Before(got.ends) {
		return &got.user
	}
	return nil
}
