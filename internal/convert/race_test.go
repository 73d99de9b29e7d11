package convert_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// entrant is a conversion that is pushed to a target while others are.
type entrant struct {
	// repo, with @commit behind it if that is not the head of main; or the path of a folder
	source string
	change func(*convert.Options)
}

// convert pushes the conversion to a repo, as a program of its own on a machine of its own would.
func (e entrant) convert(ctx context.Context, t *testing.T, srv *hubtest.Server, token, repo string) error {
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, HTTPTransport: srv, Token: token, Clock: hubtest.NewJumpClock(time.Now())}})
	if err != nil {
		return err
	}
	_, err = convertWith(ctx, t, c, e.source, plan.Options{}, func(o *convert.Options) {
		if push(o).Repo, o.CommitWait = repo, 1; e.change != nil {
			e.change(o)
		}
	})
	return err
}

// turn is a commit that waits until it may go on.
type turn struct {
	act  chan hubtest.Action
	done chan struct{}
}

// racer is an entrant under way.
type racer struct {
	entrant
	token string
	kill  context.CancelCauseFunc
	turns chan *turn
	next  *turn // that waits now
	ended chan struct{}
	err   error
}

// race runs entrants against one another: every commit to the repo waits for its turn.
type race struct {
	t      *testing.T
	srv    *hubtest.Server
	repo   string
	racers []*racer
}

func newRace(t *testing.T, srv *hubtest.Server, repo string, entrants []entrant) *race {
	r := &race{t: t, srv: srv, repo: repo}
	for i, e := range entrants {
		r.racers = append(r.racers, &racer{
			entrant: e, token: "hf_" + string(rune('a'+i)), turns: make(chan *turn), ended: make(chan struct{}),
		})
	}
	srv.ClearFaults()
	srv.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/" + repo + "/commit/*", Times: hubtest.Always, Action: r.wait})
	return r
}

// wait holds a commit until it is its turn.
func (r *race) wait(x *hubtest.Exchange) {
	token := strings.TrimPrefix(x.Request.Header.Get("Authorization"), "Bearer ")
	i := slices.IndexFunc(r.racers, func(x *racer) bool { return x.token == token })
	if i < 0 { // not in the race
		x.Next(x.ResponseWriter)
		return
	}
	w := &turn{act: make(chan hubtest.Action), done: make(chan struct{})}
	defer close(w.done)
	r.racers[i].turns <- w
	(<-w.act)(x)
}

func (r *race) start(x *racer) {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	x.kill = cancel
	go func() {
		defer close(x.ended)
		x.err = x.convert(ctx, r.t, r.srv, x.token, r.repo)
	}()
}

// await waits until every started racer has ended or wants to commit. It returns the racers that
// want to.
func (r *race) await() (ready []*racer) {
	for _, x := range r.racers {
		if x.kill == nil {
			continue
		}
		if x.next == nil {
			select {
			case x.next = <-x.turns:
			case <-x.ended:
			case <-time.After(time.Minute):
				r.t.Fatal("a run neither commits nor ends")
			}
		}
		if x.next != nil {
			ready = append(ready, x)
		}
	}
	return ready
}

// commit lets the next commit of a racer act, if it wants to make one.
func (r *race) commit(x *racer, act hubtest.Action) {
	if x.next != nil {
		w := x.next
		x.next = nil
		w.act <- act
		<-w.done
	}
}

func pass(x *hubtest.Exchange) { x.Next(x.ResponseWriter) }

// script runs the race: a capital letter starts a racer, a small one lets it commit, ~ loses the
// answer to the next commit, a digit kills a racer where it stands, + is a commit of the user. Who
// is not started by name is started first. At the end all who still run commit in turn.
func (r *race) script(script string) {
	for i, x := range r.racers {
		if !strings.ContainsRune(script, rune('A'+i)) {
			r.start(x)
		}
	}
	act := pass
	for _, step := range script {
		r.await()
		switch {
		case step == '~':
			act = hubtest.After(hubtest.Reset())
			continue
		case step == '+':
			r.srv.Push(r.repo, "main", map[string][]byte{"README.md": []byte("# edited\n")})
		case step >= 'A' && step <= 'Z':
			r.start(r.racers[step-'A'])
		case step >= 'a' && step <= 'z':
			r.commit(r.racers[step-'a'], act)
		default:
			x := r.racers[step-'1']
			x.kill(errStop)
			r.commit(x, hubtest.Status(http.StatusServiceUnavailable, nil, ""))
			<-x.ended
		}
		act = pass
	}
	for ready := r.await(); len(ready) > 0; ready = r.await() {
		r.commit(ready[0], pass)
	}
}

// known is what a conversion makes.
type known struct {
	plan    string
	weights map[string]string // sha256 by path
}

// known converts an entrant alone.
func (e entrant) known(t *testing.T, srv *hubtest.Server) (k known) {
	t.Helper()
	const repo = "me/alone"
	srv.ClearFaults()
	srv.AddRepo(repo, nil)
	whole := entrant{source: e.source}
	shared.Must(t, whole.convert(t.Context(), t, srv, testToken, repo))
	files := srv.Files(repo, "main")
	m, err := metadata.ParseManifest([]byte(content(t, srv, repo, "main", names.Manifest)), 0)
	shared.Must(t, err)
	k = known{m.Plan.Digest, map[string]string{}}
	for _, name := range weightFiles(files) {
		k.weights[name] = files[name].SHA256
	}
	return k
}

func content(t *testing.T, srv *hubtest.Server, repo, rev, name string) string {
	t.Helper()
	b, err := srv.ReadFile(repo, rev, name)
	shared.Must(t, err)
	return string(b)
}

// made reports whether a commit holds nothing but what this conversion makes.
func (k known) made(t *testing.T, srv *hubtest.Server, repo string, c hubtest.Commit) bool {
	t.Helper()
	for name, f := range c.Files {
		switch {
		case strings.HasSuffix(name, ".safetensors") && k.weights[name] != f.SHA256:
			return false
		case strings.HasPrefix(name, ".df11/"):
			if claim := ledger.ReadJournal([]byte(content(t, srv, repo, c.OID, name))); claim.Plan != k.plan {
				return false
			}
		case name == names.Manifest:
			m, err := metadata.ParseManifest([]byte(content(t, srv, repo, c.OID, name)), 0)
			if err != nil || m.Plan.Digest != k.plan {
				return false
			}
		}
	}
	return true
}

// TestPublishNeverMixesTwoSources: whatever order the commits of several runs to one target have,
// and wherever a run is killed or an answer is lost, no commit in the history of main has files of
// two conversions. Who comes later ends with an error that names the other one; runs of one
// conversion do not disturb one another, nor does a commit of the user. Who is killed and owns the
// target can go on.
func TestPublishNeverMixesTwoSources(t *testing.T) {
	t.Parallel()
	// of one name and shape
	folders := []string{writeModel(t, seeded(1)), writeModel(t, seeded(2))}
	scripts := []string{"abab", "aBabab", "baab", "a+Bb~ba", "~aabb", "a1b", "ab1b2", "a+b+", "aaBab", "aa1Bb", "aB1bb"}
	for name, tt := range map[string]struct {
		entrants []entrant
		before   string // source of a finished conversion that is there
		scripts  []string
		// a later run may go on where an earlier one was: main is not whole until then
		takeover bool
	}{
		"two repos":           {entrants: []entrant{{"org/a", nil}, {"org/b", nil}}, scripts: scripts},
		"two repos by force":  {entrants: []entrant{{"org/a", forced}, {"org/b", forced}}, scripts: scripts, takeover: true},
		"one by force":        {entrants: []entrant{{"org/a", nil}, {"org/b", forced}}, scripts: scripts, takeover: true},
		"two commits":         {entrants: []entrant{{"org/a@COMMIT", nil}, {"org/a", nil}}, scripts: scripts, takeover: true},
		"two folders":         {entrants: []entrant{{folders[0], nil}, {folders[1], nil}}, scripts: scripts},
		"the same twice":      {entrants: []entrant{{"org/a", nil}, {"org/a", nil}}, scripts: scripts},
		"three repos":         {entrants: []entrant{{"org/a", nil}, {"org/b", nil}, {"org/c", nil}}, scripts: []string{"abcabc", "cbbaac", "aBbCca", "~c1ab"}},
		"two parts and a run": {entrants: []entrant{{"org/a", part(1, 2)}, {"org/a", part(2, 2)}, {"org/b", nil}}, scripts: []string{"abc", "cab", "ba~cab", "aCbcb"}},
		"parts next to finish": {
			entrants: []entrant{{"org/a", part(1, 2)}, {"org/a", part(2, 2)}, {"org/a", part(1, 2)}, {"org/a", finishing}},
			scripts:  []string{"aaaabbbbDddddcccc", "aaaabbbbDcdcdc", "aaaabbbbDcddcc"},
		},
		"refreshes": {entrants: []entrant{{"org/a@COMMIT", nil}, {"org/a", nil}}, before: "org/a@FORMER", scripts: scripts},
	} {
		t.Run(name, func(t *testing.T) {
			srv := hubtest.Start(t, inMemory)
			former := srv.AddModel("org/a", seeded(4))
			commit := srv.Push("org/a", "main", seeded(5).Files())
			srv.Push("org/a", "main", seeded(6).Files())
			srv.AddModel("org/b", seeded(7))
			srv.AddModel("org/c", seeded(8))
			at := func(source string) string {
				return strings.NewReplacer("COMMIT", commit, "FORMER", former).Replace(source)
			}
			all := map[string]known{}
			for i := range tt.entrants {
				tt.entrants[i].source = at(tt.entrants[i].source)
				all[tt.entrants[i].source] = tt.entrants[i].known(t, srv)
			}
			before := entrant{source: at(tt.before)}
			if tt.before != "" {
				all[before.source] = before.known(t, srv)
			}
			for i := 0; i < len(tt.scripts); i += shared.Stride(3) {
				script := tt.scripts[i]
				repo := fmt.Sprintf("me/out-%d", i)
				if tt.before != "" {
					srv.ClearFaults()
					shared.Must(t, before.convert(t.Context(), t, srv, testToken, repo))
				}
				r := newRace(t, srv, repo, tt.entrants)
				r.script(script)
				r.pure(all, tt.takeover, script)
				r.judge(all, tt.before != "", script)
			}
		})
	}
}

// pure checks every commit of main. Where one may take over what another has begun, only those that
// a loader takes for a model.
func (r *race) pure(all map[string]known, takeover bool, script string) {
	r.t.Helper()
	for i, c := range r.srv.Commits(r.repo, "main") {
		if _, whole := c.Files["config.json"]; takeover && !whole {
			continue
		}
		pure := false
		for _, k := range all {
			pure = pure || k.made(r.t, r.srv, r.repo, c)
		}
		if !pure {
			r.t.Errorf("%s: commit %d from the end mixes two conversions: %s", script, i, c.Title)
		}
	}
}

// judge checks how the runs have ended, and that main can be finished by who owns it.
func (r *race) judge(all map[string]known, refresh bool, script string) {
	r.t.Helper()
	head, winners := r.srv.Commits(r.repo, "main")[0], 0
	for i, x := range r.racers {
		taken, conflict := (*publish.TakenError)(nil), (*publish.ConflictError)(nil)
		switch {
		case x.err == nil:
			winners++
			if !all[x.source].made(r.t, r.srv, r.repo, head) {
				r.t.Errorf("%s: run %c has published, and main holds something else", script, 'a'+i)
			}
		case errors.Is(x.err, errStop):
		case errors.As(x.err, &taken) || errors.As(x.err, &conflict):
			if all[x.source].made(r.t, r.srv, r.repo, head) {
				r.t.Errorf("%s: run %c has lost its own target: %v", script, 'a'+i, x.err)
			}
			if name, _, _ := strings.Cut(x.source, "@"); !filepath.IsAbs(name) && !strings.Contains(x.err.Error(), "org/") {
				r.t.Errorf("%s: the error of run %c does not name the other source: %v", script, 'a'+i, x.err)
			}
		default:
			r.t.Errorf("%s: run %c: %v", script, 'a'+i, x.err)
		}
	}
	if killed := strings.ContainsAny(script, "123456789"); winners == 0 && !killed {
		r.t.Errorf("%s: no run has published", script)
	} else if winners > 0 || refresh {
		return
	}
	r.srv.ClearFaults()
	for _, x := range r.racers {
		if k := all[x.source]; k.made(r.t, r.srv, r.repo, head) && x.whole() {
			if err := x.convert(r.t.Context(), r.t, r.srv, testToken, r.repo); err != nil {
				r.t.Errorf("%s: who owns the target can't go on: %v", script, err)
			}
			if end := r.srv.Commits(r.repo, "main")[0]; len(weightFiles(end.Files)) != len(k.weights) || !k.made(r.t, r.srv, r.repo, end) {
				r.t.Errorf("%s: main is not the result of who went on", script)
			}
			return
		}
	}
}

// whole reports whether an entrant is no part of a conversion.
func (e entrant) whole() bool {
	var o convert.Options
	if e.change != nil {
		e.change(&o)
	}
	return o.Part.Whole()
}

// TestFoundCommitMayHoldMore: a commit whose answer was lost, and that is found on the branch, may
// have others on top of it: they are looked at before the next one, and nothing of theirs is
// deleted.
func TestFoundCommitMayHoldMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	const other = "other.safetensors"
	w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Action: func(x *hubtest.Exchange) {
		x.Next(httptest.NewRecorder())
		w.Push(targetRepo, "main", map[string][]byte{other: []byte("theirs")})
		hubtest.Error(500, "", "")(x)
	}})
	_, err := w.convert(t.Context(), t, t.TempDir())
	if c := (*publish.ConflictError)(nil); !errors.As(err, &c) || !slices.Contains(c.Files, other) {
		t.Errorf("got %v", err)
	}
	if _, ok := w.target()[other]; !ok {
		t.Error("weights of others were deleted")
	}
}

// TestOtherCommitsDoNotEndARun checks a target to which a person commits before every commit of the
// run: what isn't the run's stays, and the run's is complete. A file of the run that someone else
// has written is named, and stays as well.
func TestOtherCommitsDoNotEndARun(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		w, n := newWorld(t, small(), ways), 0
		theirs := map[string]string{}
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Times: 6, Action: func(x *hubtest.Exchange) {
			n++
			name := fmt.Sprintf("notes-%d.txt", n)
			theirs[name] = "theirs"
			w.Push(targetRepo, "main", map[string][]byte{name: []byte("theirs")})
			x.Next(x.ResponseWriter)
		}})
		w.mustConvert(t)
		for name, text := range theirs {
			if content(t, w.Server, targetRepo, "main", name) != text {
				t.Errorf("%s of the other one is gone", name)
			}
		}
		if n != 6 {
			t.Errorf("%d commits", n)
		}
	})
	t.Run("the same file", func(t *testing.T) {
		w := newWorld(t, small())
		const file = "tokenizer.json"
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Action: func(x *hubtest.Exchange) {
			w.Push(targetRepo, "main", map[string][]byte{file: []byte("theirs")})
			x.Next(x.ResponseWriter)
		}})
		_, err := w.convert(t.Context(), t, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), file) || content(t, w.Server, targetRepo, "main", file) != "theirs" {
			t.Errorf("got %v", err)
		}
	})
}

// TestARepoWithoutABranch checks a target that another run is just creating: its branch comes a
// moment later.
func TestARepoWithoutABranch(t *testing.T) {
	t.Parallel()
	none := hubtest.Fault{Path: "/api/models/" + targetRepo + "/revision/main", Times: 4,
		Action: hubtest.Error(http.StatusNotFound, "RevisionNotFound", "Invalid rev id: main")}
	t.Run("it was there", func(t *testing.T) {
		w := newWorld(t, small())
		w.AddRepo(targetRepo, nil)
		w.Inject(none)
		w.mustConvert(t)
	})
	t.Run("both have created it", func(t *testing.T) {
		w := newWorld(t, small(), hubtest.WithWays(hubtest.Servers["git"]))
		none.Nth = 2 // the first one finds no repo
		w.Inject(none)
		w.mustConvert(t)
	})
}
