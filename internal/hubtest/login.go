package hubtest

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A login is a user's session in a browser or with `hf auth login`: a token that ends, and a
// refresh token for the next one. Each refresh token counts once.
type login struct {
	user  User
	lasts time.Duration
}

// Login logs a user in and returns a token that lasts so long, and its refresh token.
func (s *Server) Login(u User, lasts time.Duration) (token, refresh string) {
	s.trust.mu.Lock()
	defer s.trust.mu.Unlock()
	return s.issue(login{u, lasts})
}

// issue makes the next tokens of a login.
func (s *Server) issue(l login) (token, refresh string) {
	token, refresh = "hf_oauth_"+rand.Text(), "hf_refresh_"+rand.Text()
	s.trust.tokens[token] = issued{l.user, s.cfg.clock().Add(l.lasts)}
	s.trust.logins[refresh] = l
	return token, refresh
}

// Revoke ends what a refresh token stands for.
func (s *Server) Revoke(refresh string) {
	s.trust.mu.Lock()
	defer s.trust.mu.Unlock()
	delete(s.trust.logins, refresh)
}

// loginClient is huggingface_hub's OAuth client, the only one here.
const loginClient = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"

// oauthToken is POST /oauth/token. A form asks to renew a login (RFC 6749, section 6), as
// huggingface_hub's _oauth_device.py does; JSON comes from trusted publishers.
func (s *Server) oauthToken(w http.ResponseWriter, r *http.Request) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return s.exchange(w, r)
	}
	refuse := func(code, why string) error {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": why})
		return nil
	}
	body := make([]byte, 1<<16)
	n := 0
	for n < len(body) {
		m, err := r.Body.Read(body[n:])
		if n += m; err != nil {
			break
		}
	}
	q, err := url.ParseQuery(string(body[:n]))
	switch {
	case err != nil || q.Get("grant_type") != "refresh_token" || r.Header.Get("Authorization") != "":
		return refuse("invalid_request", "Malformed request")
	case q.Get("client_id") != loginClient:
		return refuse("invalid_client", "Unknown client")
	}
	s.trust.mu.Lock()
	defer s.trust.mu.Unlock()
	l, known := s.trust.logins[q.Get("refresh_token")]
	if !known {
		return refuse("invalid_grant", "Refresh token expired or revoked")
	}
	delete(s.trust.logins, q.Get("refresh_token"))
	token, refresh := s.issue(l)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": token, "refresh_token": refresh,
		"token_type": "bearer", "expires_in": int(l.lasts.Seconds())})
	return nil
}
