package hub_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// odd is a path that an address must escape.
const odd = "the 1st #1, 50%/w.safetensors"

// TestWitness publishes a file, and then another one of the same size, and lets another client look.
// It sees what the server lists and stores, never the token, and says whether that's what was sent. It
// compares the bytes of files that this client has uploaded, and of those that it was shown elsewhere.
func TestWitness(t *testing.T) {
	bytesOf := func(seed uint64) []byte {
		b := make([]byte, 100_000)
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	type setting struct {
		ways  hubtest.Ways
		work  bool // the file is committed to another branch first
		spoil func(*hubtest.Server)
		// parts of the error; "" for none
		want  string
		wrong bool // what was published is at fault
	}
	always := func(path string, a hubtest.Action) func(*hubtest.Server) {
		return func(s *hubtest.Server) {
			s.Inject(hubtest.Fault{Host: hubtest.HostHub, Method: "GET", Path: path, Times: hubtest.Always, Action: a})
		}
	}
	for name, c := range map[string]setting{
		"as it is":             {},
		"by another branch":    {work: true},
		"KohakuHub":            {ways: hubtest.Servers["kohakuhub"]},
		"no sizes":             {ways: hubtest.Ways{NoSizes: true}},
		"old bytes":            {hubtest.Ways{OneRow: true}, true, nil, odd + " has other bytes at ", true},
		"a file is gone":       {spoil: func(s *hubtest.Server) { s.RemoveRepo(target); s.AddRepo(target, map[string][]byte{"x": nil}) }, want: "no such revision"},
		"the list is no JSON":  {spoil: always("*/revision/*", hubtest.Status(200, nil, "nonsense")), want: "invalid character"},
		"the list is refused":  {spoil: always("*/revision/*", hubtest.Error(403, "", "no")), want: "403"},
		"the storage is wrong": {spoil: always("*/resolve/*", hubtest.Error(403, "", "no")), want: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, hubtest.Start(t, hubtest.WithWays(c.ways)), 1000)
			w.srv.AddRepo(target, map[string][]byte{}, hubtest.Private())
			var sent []hub.FileInfo
			var commit, there hub.Commit
			for seed := range uint64(2) {
				parent, err := w.Head(t.Context(), target, "main")
				must(t, err)
				data, config := bytesOf(seed), bytes.Repeat([]byte("{}\n"), int(seed)+1)
				sent = []hub.FileInfo{{Path: odd, Size: int64(len(data)), SHA256: sum(data)}, {Path: "config.json", Size: int64(len(config)), SHA256: sum(config)}}
				ops, err := w.Upload(t.Context(), target, "main", hub.Blob{Path: odd, Size: sent[0].Size, SHA256: sent[0].SHA256, Reader: bytes.NewReader(data)})
				must(t, err)
				if c.work && seed > 0 {
					must(t, w.CreateBranch(t.Context(), target, "work", ""))
					head, err := w.Head(t.Context(), target, "work")
					must(t, err)
					there, err = w.Commit(t.Context(), target, "work", hub.CommitRequest{Summary: "x", Parent: head, Ops: ops})
					must(t, err)
				}
				commit, err = w.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: "x", Parent: parent, Ops: append(ops, hub.FileOp("config.json", config))})
				must(t, err)
			}
			if c.spoil != nil {
				c.spoil(w.srv)
			}
			clients := []*hub.Client{w.Client}
			if c.work { // another process, which has seen the file on the other branch
				other := newWorldOn(t, w.srv, 1000).Client
				must(t, other.KeepSample(t.Context(), hub.FileRef{Repo: target, Commit: there.OID, Path: odd, Size: sent[0].Size, SHA256: sent[0].SHA256, NoCache: true}))
				clients = append(clients, other)
			}
			for i, client := range clients {
				err := client.Witness(t.Context(), target, commit.OID, sent, "config.json")
				_, wrong := errors.AsType[*hub.WitnessError](err)
				if (err != nil) != (c.want != "") || wrong != c.wrong || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("client %d: %v", i, err)
				}
			}
			// another result than what was sent is seen in the list
			if sent[0].SHA256, c.want = sum([]byte("x")), odd+" is listed with"; name == "as it is" {
				if err := w.Witness(t.Context(), target, commit.OID, sent, "config.json"); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("other bytes were sent: %v", err)
				}
			}
		})
	}
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// TestWitnessOfPlainFiles checks files that aren't in LFS, and that the other client doesn't read: other
// bytes of equal size have another hash in git.
func TestWitnessOfPlainFiles(t *testing.T) {
	w := newWorld(t, 100)
	w.srv.AddRepo(target, map[string][]byte{"README.md": []byte("new"), "config.json": []byte("{}")})
	hash := func(text string) string {
		h := hub.NewHash("git", int64(len(text)))
		h.Write([]byte(text))
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	for text, want := range map[string]bool{"new": true, "old": false} {
		sent := []hub.FileInfo{{Path: "README.md", Size: 3, SHA256: sum([]byte(text)), BlobID: hash(text)}}
		err := w.Witness(t.Context(), target, w.srv.Head(target, "main"), sent)
		e, wrong := errors.AsType[*hub.WitnessError](err)
		if (err == nil) != want || wrong == want || wrong && (len(e.Files) != 1 || e.Files[0].Path != "README.md" || e.Files[0].Gone) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
