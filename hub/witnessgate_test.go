//go:build !js

package hub

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestGateNeedsItsSecret asks the gate to a private repo as another user of this machine could, who
// knows its port, the repo, and the commit. Only who knows the secret gets a file that was sent.
func TestGateNeedsItsSecret(t *testing.T) {
	const repo, private = "me/private", "only for me"
	srv := hubtest.Start(t)
	commit := srv.AddRepo(repo, map[string][]byte{"config.json": []byte(private), "other.json": []byte(private)}, hubtest.Private())
	c, err := New(Options{Connection: Connection{Endpoint: srv.URL, Token: "hf_test"}})
	if err != nil {
		t.Fatal(err)
	}
	var gates []string
	for range 2 {
		g, err := c.openGate(t.Context(), repo, commit, []FileInfo{{Path: "config.json", Size: int64(len(private))}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.close()
		gates = append(gates, g.url)
	}
	u, err := url.Parse(gates[0])
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(gates[1])
	if err != nil {
		t.Fatal(err)
	}
	root := "http://" + u.Host
	file, list := "/"+repo+"/resolve/"+commit+"/config.json", "/api/models/"+repo+"/revision/"+commit
	for address, want := range map[string]int{
		gates[0] + file: 200, gates[0] + list: 200,
		root + file: 404, root + list: 404, root: 404, root + u.Path[:len(u.Path)-1] + file: 404,
		root + strings.ToLower(u.Path) + file: 404, root + other.Path + file: 404,
		gates[0] + "/" + repo + "/resolve/" + commit + "/other.json":   403,
		gates[0] + "/" + repo + "/resolve/main/config.json":            403,
		gates[0] + "/api/models/" + repo + "/tree/" + commit:           403,
		gates[0] + "/api/models/me/another/revision/" + commit:         403,
		gates[0] + "/" + repo + "/resolve/" + commit + "/%2e%2e/x":     403,
		gates[0] + "/api/models/" + repo + "/revision/" + commit + "/": 403,
	} {
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || strings.Contains(string(body), private) != (want == 200 && address == gates[0]+file) {
			t.Errorf("%s: %s, %q", address, resp.Status, body)
		}
	}
}
