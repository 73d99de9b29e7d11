package hubtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeFiles fills a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for p, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddDir(t *testing.T) {
	root := t.TempDir()
	writeFiles(t, root, map[string]string{
		"org/m/config.json": "{}", "org/m/sub/w.safetensors": "weights", "org/m/.cache/x": "no", "org/m/.git/HEAD": "no",
		".hidden/m/x": "no", "org/.m/x": "no", "org/file": "no",
	})
	s := Start(t)
	if err := s.AddDir(root); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Repos()); got != "[org/m]" {
		t.Errorf("repos: %s", got)
	}
	files := s.Files("org/m", "main")
	if len(files) != 3 || files["sub/w.safetensors"].SHA256 != sha([]byte("weights")) {
		t.Errorf("files: %+v", files)
	}
	resp, body := do(t, "GET", location(t, s, "org/m", "sub/w.safetensors"), "", "")
	if want(t, resp, body, 200, ""); body != "weights" {
		t.Errorf("body %q", body)
	}
}

func TestPushesLand(t *testing.T) {
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"me/m/old.txt": "old", "me/m/d/gone.txt": "gone", "me/m/w.safetensors": "first"})
	s := Start(t, WithPushDir(root), WithMultipart(1, 1000))
	if err := s.AddDir(root); err != nil {
		t.Fatal(err)
	}
	first := s.Head("me/m", "main")
	data := bytes.Repeat([]byte("second "), 500)
	upload(t, s, "me/m", data)
	resp, body := do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", commitBody(
		lfsLine("w.safetensors", data), lfsLine("copy/w.safetensors", data), fileLine("config.json", "{}"),
		`{"key":"deletedFile","value":{"path":"d/gone.txt"}}`))
	want(t, resp, body, 200, "")
	for p, content := range map[string]string{"w.safetensors": string(data), "copy/w.safetensors": string(data), "config.json": "{}", "old.txt": "old"} {
		if got, err := os.ReadFile(filepath.Join(root, "me", "m", p)); err != nil || string(got) != content {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "me", "m", "d")); !os.IsNotExist(err) {
		t.Errorf("the empty folder is still there: %v", err)
	}
	if old, err := s.ReadFile("me/m", first, "w.safetensors"); err != nil || string(old) != "first" {
		t.Errorf("the first commit now holds %q, %v", old, err)
	}
	resp, body = do(t, "POST", s.URL+"/api/models/me/m/branch/work", "tok", "{}")
	want(t, resp, body, 200, "")
	resp, body = do(t, "POST", s.URL+"/api/models/me/m/commit/work", "tok", commitBody(fileLine("work.txt", "x")))
	want(t, resp, body, 200, "")
	if _, err := os.Stat(filepath.Join(root, "me", "m", "work.txt")); !os.IsNotExist(err) {
		t.Error("a branch landed in the folder")
	}
	s.Close()
	left, _ := filepath.Glob(filepath.Join(root, ".*"))
	if len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestFolderFollowsTheRepo(t *testing.T) {
	root := t.TempDir()
	s := Start(t, WithPushDir(root))
	resp, body := do(t, "POST", s.URL+"/api/repos/create", "tok", `{"name":"me/m"}`)
	want(t, resp, body, 200, "")
	if _, err := os.Stat(filepath.Join(root, "me", "m", attributesFile)); err != nil {
		t.Error(err)
	}
	s.Rename("me/m", "you/n")
	if _, err := os.Stat(filepath.Join(root, "you", "n", attributesFile)); err != nil {
		t.Error(err)
	}
	s.RemoveRepo("you/n")
	if _, err := os.Stat(filepath.Join(root, "you", "n")); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
}

// TestLinkSpeed checks the lower bound only: a busy machine may be slower.
func TestLinkSpeed(t *testing.T) {
	s := Start(t, WithLinkSpeed(1_000_000, 500_000), WithMultipart(1, 1_000_000))
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": data})
	url := location(t, s, "me/m", "w.safetensors")
	start := time.Now()
	resp, body := do(t, "GET", url, "", "")
	want(t, resp, body, 200, "")
	if d := time.Since(start); d < 80*time.Millisecond {
		t.Errorf("100 kB at 1 MB/s came in %v", d)
	}
	start = time.Now()
	upload(t, s, "me/m", append(data, 'x'))
	if d := time.Since(start); d < 160*time.Millisecond {
		t.Errorf("100 kB at 500 kB/s went in %v", d)
	}
	var down, up int64
	for _, q := range s.Requests() {
		if q.Host == HostCDN {
			down, up = down+q.Sent, up+q.Received
		}
	}
	if down != 100_000 || up != 100_001 {
		t.Errorf("counted %d down, %d up", down, up)
	}
}
