// Command page answers what the page asks of the Hub: a hub of hubtest and its storage with CORS,
// sign-in by OAuth with PKCE, and jobs that really run the program. A script (check.mjs) stands in
// front of it, which serves the page and plays what goes wrong. It prints its addresses, and at
// /_test/ reports what clients did wrong.
package main

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// token is what a sign-in gives.
const token, user = "hf_oauth_of_ann", "ann"

type stand struct {
	hub           *hubtest.Server
	data, program string
	front, store  string // addresses of hub and storage for browsers
	page          string

	mu    sync.Mutex
	codes map[string]url.Values // what a code was asked for with
	jobs  map[string]*job
	hold  bool // the next job, after it reported progress, until it's canceled
	wrong []string
}

func main() {
	data, program := os.Args[1], os.Args[2]
	hub, err := hubtest.Listen("127.0.0.1:0", hubtest.WithPushDir(data),
		hubtest.WithLinkSpeed(0, 5_000_000),
		hubtest.WithUser(token, hubtest.User{Name: user, Granted: []string{"org/gated"}, Made: true}))
	check(err)
	check(hub.AddDir(data))
	addModels(hub)
	s := &stand{hub: hub, data: data, program: program, codes: map[string]url.Values{},
		jobs: map[string]*job{}, page: os.Args[3], front: os.Args[4], store: os.Args[5]}
	api := http.NewServeMux()
	rest := s.proxy(hub.URL, "")
	api.Handle("/", rest)
	api.HandleFunc("GET /api/models", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("sort") == "" { // no suggestions are asked for
			rest.ServeHTTP(w, r)
			return
		}
		s.search(w, r)
	})
	api.HandleFunc("GET /oauth/authorize", s.authorize)
	api.HandleFunc("POST /oauth/token", s.token)
	api.HandleFunc("GET /oauth/userinfo", s.userinfo)
	api.HandleFunc("GET /api/jobs/hardware", s.hardware)
	api.HandleFunc("POST /api/jobs/{user}", s.start)
	api.HandleFunc("GET /api/jobs/{user}", s.list)
	api.HandleFunc("GET /api/jobs/{user}/{id}", s.one)
	api.HandleFunc("GET /api/jobs/{user}/{id}/logs", s.logs)
	api.HandleFunc("POST /api/jobs/{user}/{id}/cancel", s.cancel)
	api.HandleFunc("GET /_test/wrong", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, 200, append(s.wrong, hub.Violations()...))
	})
	api.HandleFunc("POST /_test/hold", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hold = true
	})
	api.HandleFunc("POST /_test/damage",
		func(http.ResponseWriter, *http.Request) { damage(hub, "ann/good-DF11", "ann/bad-DF11") })
	api.HandleFunc("POST /_test/forge", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, forge(hub, "ann/good-DF11", "ann/forged"))
	})
	fmt.Println("READY", serve(cors(api, "")), serve(s.proxy(hub.CDNURL, "*")), hub.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the script ends
	hub.Close()
}

// damage makes a copy of a repo with one wrong byte.
func damage(hub *hubtest.Server, from, to string) {
	files := filesOf(hub, from)
	files["model_layers_0.safetensors"][5000]++
	hub.AddRepo(to, files)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serve listens on a free port and returns the address.
func serve(h http.Handler) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() { check(http.Serve(l, h)) }()
	return "http://" + l.Addr().String()
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	check(json.NewEncoder(w).Encode(v))
}

// fault notes what a client did wrong.
func (s *stand) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// exposed are the headers that the Hub shows to scripts of other origins, seen in November 2026.
const exposed = "X-Repo-Commit,X-Request-Id,X-Error-Code,X-Error-Message,X-Total-Count,ETag,Link,Accept-Ranges,Content-Range,X-Linked-Size,X-Linked-ETag,X-Xet-Hash"

// cors answers as the Hub, which repeats the origin, or its storage, which takes any.
func cors(next http.Handler, origin string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin",
			cmp.Or(origin, r.Header.Get("Origin"), "https://huggingface.co"))
		h.Set("Access-Control-Expose-Headers", exposed)
		h.Add("Vary", "Origin")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET,HEAD,POST,PUT,DELETE,PATCH")
			h.Set("Access-Control-Allow-Headers", "Authorization,Content-Type,Range,Accept")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// proxy passes requests on to a listener of hubtest, and its redirects to the addresses for
// browsers.
func (s *stand) proxy(to, origin string) http.Handler {
	u, err := url.Parse(to)
	check(err)
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = u.Host },
		ModifyResponse: func(resp *http.Response) error {
			for _, name := range []string{"Location", "Link"} {
				if v := resp.Header.Get(name); v != "" {
					resp.Header.Set(name,
						strings.NewReplacer(s.hub.CDNURL, s.store, s.hub.URL, s.front).Replace(v))
				}
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	if origin == "" {
		return p // inside cors already
	}
	return cors(p, origin)
}

// search lists the repos whose names hold a text.
func (s *stand) search(w http.ResponseWriter, r *http.Request) {
	dirs, err := filepath.Glob(filepath.Join(s.data, "*", "*"))
	check(err)
	found := []map[string]string{}
	for _, dir := range dirs {
		id, err := filepath.Rel(s.data, dir)
		check(err)
		if strings.Contains(strings.ToLower(id), strings.ToLower(r.FormValue("search"))) {
			found = append(found, map[string]string{"id": id})
		}
	}
	answer(w, 200, found)
}

// --- sign-in ---

// authorize shows the consent page.
func (s *stand) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != "space" || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" ||
		len(q.Get("code_challenge")) != 43 || len(q.Get("state")) < 20 ||
		q.Get("redirect_uri") != s.page+"/" {
		s.fault("authorize: %v", q)
	}
	if q.Get("scope") != "openid profile jobs contribute-repos gated-repos" {
		s.fault("authorize: scope %q", q.Get("scope"))
	}
	code := rand.Text()
	s.mu.Lock()
	s.codes[code] = q
	s.mu.Unlock()
	back := q.Get("redirect_uri") + "?" + url.Values{"code": {code},
		"state": {q.Get("state")}}.Encode()
	fmt.Fprintf(w,
		`<!doctype html><title>Sign in</title><link rel="icon" href="data:,"><a id="yes" href="%s">Authorize</a>`, html.EscapeString(back))
}

func (s *stand) token(w http.ResponseWriter, r *http.Request) {
	check(r.ParseForm())
	s.mu.Lock()
	asked, known := s.codes[r.Form.Get("code")]
	delete(s.codes, r.Form.Get("code"))
	s.mu.Unlock()
	sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
	switch {
	case !known, r.Form.Get("grant_type") != "authorization_code", r.Form.Get(
		"client_id") != "space", r.Form.Get("redirect_uri") != asked.Get("redirect_uri"),
		base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge"):
		s.fault("token: %v", r.Form)
		answer(w, 400, map[string]string{"error": "invalid_grant"})
	default:
		answer(w, 200, map[string]any{"access_token": token, "expires_in": 86400,
			"token_type": "bearer", "scope": asked.Get("scope")})
	}
}

// signedIn refuses others.
func (s *stand) signedIn(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") != "Bearer "+token || r.PathValue("user") != "" &&
		r.PathValue("user") != user {
		answer(w, 401, map[string]string{"error": "Invalid username or password."})
		return false
	}
	return true
}

func (s *stand) userinfo(w http.ResponseWriter, r *http.Request) {
	if s.signedIn(w, r) {
		answer(w, 200, map[string]any{"sub": "1", "name": "Ann <b>O'Neill</b>",
			"preferred_username": user, "canPay": true})
	}
}

// --- jobs ---

type job struct {
	ID      string            `json:"id"`
	Status  map[string]string `json:"status"`
	Flavor  string            `json:"flavor"`
	Command []string          `json:"command"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"createdAt"`

	process *exec.Cmd
	changed *sync.Cond
	broken  bool // a stream of the log was
	lines   []string
	ended   bool
}

func (s *stand) hardware(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, []map[string]any{
		{"name": "cpu-upgrade", "unitCostUSD": 0.0005, "unitLabel": "minute"},
		{"name": "cpu-performance", "unitCostUSD": 1.9 / 60, "unitLabel": "minute"},
	})
}

// start runs the command of a job where its image would.
func (s *stand) start(w http.ResponseWriter, r *http.Request) {
	if !s.signedIn(w, r) {
		return
	}
	var q struct {
		DockerImage, Flavor string
		Command             []string
		Environment         map[string]string
		Secrets             map[string]string
		Labels              map[string]string
		TimeoutSeconds      int
	}
	check(json.NewDecoder(r.Body).Decode(&q))
	if !strings.HasPrefix(q.DockerImage, "ghcr.io/df11-convert/df11-convert@sha256:") ||
		q.Command[0] != "df11-convert" || q.Secrets["HF_TOKEN"] != token ||
		q.TimeoutSeconds < 600 || q.Labels["df11-convert"] == "" ||
		!strings.Contains(q.Command[1], "@") || strings.Contains(fmt.Sprint(q.Command, q.Environment), token) {
		s.fault("job: %+v", q)
	}
	home, err := os.MkdirTemp("", "df11-job-")
	check(err)
	for i, arg := range q.Command {
		if arg == "/tmp/df11" { // a container has a /tmp of its own
			q.Command[i] = filepath.Join(home, "work")
		}
	}
	j := &job{ID: rand.Text(), Status: map[string]string{"stage": "RUNNING"}, Flavor: q.Flavor,
		Labels: q.Labels, Created: time.Now(), Command: slices.Clone(q.Command), changed: sync.NewCond(new(sync.Mutex))}
	j.process = exec.Command(s.program, q.Command[1:]...)
	j.process.Env = []string{"HOME=" + home, "TMPDIR=" + home, "HF_ENDPOINT=" + s.hub.URL,
		"HF_TOKEN=" + q.Secrets["HF_TOKEN"], "CI=true"}
	out, err := j.process.StdoutPipe()
	check(err)
	j.process.Stderr = j.process.Stdout
	check(j.process.Start())
	s.mu.Lock()
	s.jobs[j.ID] = j
	hold := s.hold
	s.hold = false
	s.mu.Unlock()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if hold && strings.Contains(lines.Text(), `"msg":"progress"`) {
				hold = false
				j.signal(syscall.SIGSTOP)
			}
			j.change(func() { j.lines = append(j.lines, lines.Text()) })
		}
		err := j.process.Wait()
		j.change(func() {
			j.ended = true
			if j.Status["stage"] == "RUNNING" {
				j.Status["stage"] = map[bool]string{true: "COMPLETED", false: "ERROR"}[err == nil]
			}
		})
		_ = os.RemoveAll(home)
	}()
	answer(w, 200, j)
}

func (j *job) signal(sig os.Signal) {
	if err := j.process.Process.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		check(err)
	}
}

func (j *job) change(f func()) {
	j.changed.L.Lock()
	f()
	j.changed.L.Unlock()
	j.changed.Broadcast()
}

// job finds the job of a request.
func (s *stand) job(w http.ResponseWriter, r *http.Request) *job {
	if !s.signedIn(w, r) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[r.PathValue("id")]
}

func (s *stand) one(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.change(func() { answer(w, 200, j) })
	}
}

func (s *stand) list(w http.ResponseWriter, r *http.Request) {
	if !s.signedIn(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []*job{}
	for _, j := range s.jobs {
		fits := slices.Contains(r.URL.Query()["stage"], j.Status["stage"])
		for _, label := range r.URL.Query()["label"] {
			k, v, _ := strings.Cut(label, "=")
			fits = fits && j.Labels[k] == v
		}
		if fits {
			all = append(all, j)
		}
	}
	answer(w, 200, all)
}

// logs streams all lines, old and new. The first stream of a job breaks in the middle.
func (s *stand) logs(w http.ResponseWriter, r *http.Request) {
	j := s.job(w, r)
	if j == nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	first := false
	j.change(func() { first, j.broken = !j.broken, true })
	for sent := 0; ; {
		j.changed.L.Lock()
		for sent == len(j.lines) && !j.ended {
			j.changed.Wait()
		}
		lines, ended := slices.Clone(j.lines[sent:]), j.ended
		j.changed.L.Unlock()
		for _, line := range lines {
			data, err := json.Marshal(map[string]string{"data": line,
				"timestamp": time.Now().Format(time.RFC3339)})
			check(err)
			if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
				return
			}
			sent++
		}
		w.(http.Flusher).Flush()
		if ended || first && sent > 2 {
			return
		}
	}
}

func (s *stand) cancel(w http.ResponseWriter, r *http.Request) {
	if j := s.job(w, r); j != nil {
		j.change(func() { j.Status["stage"] = "CANCELED" })
		j.signal(syscall.SIGTERM)
		j.signal(syscall.SIGCONT)
		j.change(func() { answer(w, 200, j) })
	}
}
