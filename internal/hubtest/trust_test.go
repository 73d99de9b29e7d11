package hubtest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

type grant struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Expires int    `json:"expires_in"`
	Error   string `json:"error"`
	Why     string `json:"error_description"`
}

// whoStatus is the status of a request with a token.
func whoStatus(t *testing.T, s *Server, token string) int {
	t.Helper()
	return ask(t, "GET", s.URL+"/api/whoami-v2", token, "").status
}

// TestLogin: a login's token ends when it says, and its refresh token is worth one next token, in the
// form of RFC 6749, section 6, for huggingface_hub's client (_oauth_device.py there).
func TestLogin(t *testing.T) {
	clock := NewJumpClock(Noon)
	s := Start(t, WithClock(clock.Now), WithUser("hf_x", User{Name: "other"}))
	token, refresh := s.Login(User{Name: "me"}, time.Hour)
	form := func(pairs ...string) string {
		q := url.Values{"grant_type": {"refresh_token"}, "client_id": {loginClient}, "refresh_token": {refresh}}
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q.Encode()
	}
	renew := func(body string, header ...string) (int, grant) {
		a := ask(t, "POST", s.URL+"/oauth/token", "", body, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
		return a.status, decode[grant](t, a.body)
	}
	for name, tc := range map[string]struct{ body, token, want string }{
		"another grant":       {form("grant_type", "password"), "", "invalid_request"},
		"another client":      {form("client_id", "mine"), "", "invalid_client"},
		"an unknown token":    {form("refresh_token", refresh+"x"), "", "invalid_grant"},
		"the token itself":    {form("refresh_token", token), "", "invalid_grant"},
		"a token in a header": {form(), "Bearer " + token, "invalid_request"},
	} {
		var header []string
		if tc.token != "" {
			header = []string{"Authorization", tc.token}
		}
		if status, g := renew(tc.body, header...); status != 400 || g.Error != tc.want || g.Access != "" {
			t.Errorf("%s: %d %+v", name, status, g)
		}
	}
	if status := whoStatus(t, s, token); status != 200 {
		t.Errorf("the token: %d", status)
	}
	world.Must(t, clock.Sleep(t.Context(), time.Hour))
	if status := whoStatus(t, s, token); status != 401 {
		t.Errorf("the token after an hour: %d", status)
	}
	status, next := renew(form())
	if status != 200 || next.Access == token || next.Refresh == refresh || next.Expires != 3600 || whoStatus(t, s, next.Access) != 200 || whoStatus(t, s, token) != 401 {
		t.Errorf("renewed: %d %+v", status, next)
	}
	if status, g := renew(form()); status != 400 || g.Error != "invalid_grant" {
		t.Errorf("renewed again: %d %+v", status, g)
	}
	s.Revoke(next.Refresh)
	if status, g := renew(form("refresh_token", next.Refresh)); status != 400 || g.Error != "invalid_grant" {
		t.Errorf("renewed after it was revoked: %d %+v", status, g)
	}
}

// TestTrustedPublisher: a job's identity is worth a token for the resource that trusts the job's
// repository, within its time, for this Hub (RFC 8693, and
// https://huggingface.co/docs/hub/trusted-publishers). The Hub doesn't say why it refuses one.
func TestTrustedPublisher(t *testing.T) {
	clock := NewJumpClock(Noon)
	s := Start(t, WithClock(clock.Now), WithUser("hf_x", User{Name: "org", Granted: []string{"them/gated"}}), WithPublisher("org/m", "us/job"), WithPublisher("org", "us/job"))
	for _, name := range []string{"org/m", "org/other"} {
		s.AddRepo(name, map[string][]byte{"README.md": []byte("# x\n")})
	}
	s.AddRepo("them/gated", map[string][]byte{"README.md": []byte("# x\n")}, Gated("manual"))
	exchange := func(identity, resource string, change ...string) (int, grant) {
		body := strings.NewReplacer(change...).Replace(fmt.Sprintf(`{"grant_type":"urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token_type":"urn:ietf:params:oauth:token-type:id_token","subject_token":%q,"resource":%q}`, identity, resource))
		a := ask(t, "POST", s.URL+"/oauth/token", "", body)
		return a.status, decode[grant](t, a.body)
	}
	env := s.JobEnv("us/job")
	asked := env["ACTIONS_ID_TOKEN_REQUEST_URL"] + "&audience=" + url.QueryEscape(s.URL)
	if a := ask(t, "GET", asked, "hf_x", ""); a.status != 401 {
		t.Errorf("an identity for someone else: %d %s", a.status, a.body)
	}
	job := decode[struct{ Value string }](t, must(t, "GET", asked, env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"], "").body).Value
	said := map[string]bool{}
	for name, tc := range map[string]struct{ identity, resource string }{
		"not an identity":          {"eyJ.x", "org/m"},
		"a token of the Hub":       {"hf_x", "org/m"},
		"for another Hub":          {s.NewIdentity("us/job", "https://huggingface.co"), "org/m"},
		"of another repository":    {s.NewIdentity("you/job", s.URL), "org/m"},
		"for another repo":         {job, "org/other"},
		"for a repo of a stranger": {job, "them/gated"},
	} {
		status, g := exchange(tc.identity, tc.resource)
		if said[g.Why] = true; status != 400 || g.Error != "invalid_grant" || g.Access != "" {
			t.Errorf("%s: %d %+v", name, status, g)
		}
	}
	if len(said) != 1 {
		t.Errorf("the Hub says why: %v", said)
	}
	for _, change := range [][]string{{"token-exchange", "refresh_token"}, {"id_token", "access_token"}, {"org/m", ""}} {
		if status, g := exchange(job, "org/m", change...); status != 400 || g.Error != "invalid_request" {
			t.Errorf("%v: %d %+v", change, status, g)
		}
	}
	_, writer := exchange(job, "org/m")
	_, reader := exchange(job, "org")
	const write, read = "/api/models/%/auth-check/write", "/%/resolve/main/README.md"
	for _, tc := range []struct {
		token, route, repo string
		status             int
	}{
		{writer.Access, write, "org/m", 200}, {writer.Access, write, "org/other", 403}, {writer.Access, read, "them/gated", 403},
		{reader.Access, write, "org/m", 403}, {reader.Access, read, "them/gated", 200},
	} {
		if a := ask(t, "GET", s.URL+strings.Replace(tc.route, "%", tc.repo, 1), tc.token, ""); a.status != tc.status {
			t.Errorf("%+v: %d %s", tc, a.status, a.body)
		}
	}
	world.Must(t, clock.Sleep(t.Context(), identityTTL+time.Second))
	if status, g := exchange(job, "org/m"); status != 400 || g.Error != "invalid_grant" {
		t.Errorf("an identity after its time: %d %+v", status, g)
	}
	world.Must(t, clock.Sleep(t.Context(), tokenTTL-identityTTL-2*time.Second))
	if status := whoStatus(t, s, writer.Access); status != 200 || writer.Expires != 3600 {
		t.Errorf("the token within its time: %d, %d s", status, writer.Expires)
	}
	world.Must(t, clock.Sleep(t.Context(), time.Second))
	if status := whoStatus(t, s, writer.Access); status != 401 {
		t.Errorf("the token after its time: %d", status)
	}
}
