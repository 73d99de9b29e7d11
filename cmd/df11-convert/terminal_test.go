//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

var updatePictures = flag.Bool("update", false, "draw the pictures in testdata/terminal again")

// widths are the columns of the terminals in the pictures.
var widths = []int{40, 80, 200}

// A display is a pseudo-terminal and an emulator that shows what is written to it.
type display struct {
	keyboard *os.File
	vt       vt10x.Terminal
	closed   chan struct{} // when no program can write to the terminal any more
}

// watched shows the output of a pseudo-terminal on an emulator.
func watched(t *testing.T, keyboard *os.File, columns, rows int) *display {
	d := &display{keyboard: keyboard, vt: vt10x.New(vt10x.WithSize(columns, rows)), closed: make(chan struct{})}
	t.Cleanup(func() { keyboard.Close() })
	go func() {
		defer close(d.closed)
		_, _ = io.Copy(d.vt, keyboard) // ends with EIO when the other side is closed
	}()
	return d
}

// shown returns the text on the terminal, without trailing blanks and blank lines.
func (d *display) shown() string {
	var b strings.Builder
	for line := range strings.Lines(d.vt.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// await waits until the terminal shows a text.
func (d *display) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(d.shown(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the terminal never shows %q:\n%s", text, d.shown())
		}
	}
}

// moving lists what differs from run to run, and what pictures show instead, just as wide.
var moving = []struct {
	is   *regexp.Regexp
	show string
}{
	{regexp.MustCompile(`(127\.0\.0\.1:\n?)\d{5}`), "${1}55555"},
	{regexp.MustCompile(`\d\.\d s\b`), "0.0 s"},
	{regexp.MustCompile(`([━╸─%]) \d+s( · \d+/)`), "$1 0s$2"},
	{regexp.MustCompile(`(4/15 files · )[\d.]+ kB`), "${1}99.9 kB"}, // as much as was read ahead
}

// picture returns the text on the terminal, with a heading.
func (d *display) picture(width int) string {
	got := d.shown()
	for _, m := range moving {
		got = m.is.ReplaceAllString(got, m.show)
	}
	return fmt.Sprintf("== %d columns ==\n%s\n", width, got)
}

// checkPictures compares pictures with those in testdata/terminal, or draws those again.
func checkPictures(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "terminal", name+".txt")
	if *updatePictures {
		world.Write(t, file, got)
		return
	}
	if want := string(world.Read(t, file)); got != want {
		t.Errorf("%s: the terminal shows\n%s\nwant\n%s", file, got, want)
	}
}

// onTerminal runs a command of the program on a terminal of its own, in a folder, and returns the
// command and the picture of its end.
func onTerminal(t *testing.T, hub, dir string, columns int, command string, meanwhile func(*display)) string {
	t.Helper()
	const rows = 100
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	args := strings.Fields(command)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = dir
	home := filepath.Join(dir, ".home")
	c.Env = append(os.Environ(), "HF_ENDPOINT="+hub, "HF_TOKEN=hf_tester", "HOME="+home, "XDG_CACHE_HOME="+home, "NO_PROXY=*", "TERM=xterm", "NO_COLOR=", "CI=", "LC_ALL=C.UTF-8")
	keyboard, err := pty.StartWithSize(c, &pty.Winsize{Cols: uint16(columns), Rows: rows})
	world.Must(t, err)
	d := watched(t, keyboard, columns, rows)
	meanwhile(d)
	_ = c.Wait() // the picture shows how it ended
	<-d.closed
	return "$ " + command + "\n" + d.picture(columns)
}

// pictureHub starts a hub with some models, and makes a folder with a list of models and a model of
// unknown origin.
func pictureHub(t *testing.T) (hub *hubtest.Server, dir string) {
	t.Helper()
	hub, dir = hubtest.Start(t, hubtest.WithUser("hf_tester", hubtest.User{Name: "tester"})), t.TempDir()
	small := hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 12, ShardBytes: 100_000}
	hub.AddModel("acme/model", hubtest.NewLlama(1, small))
	hub.AddModel("acme/other", hubtest.NewLlama(2, small))
	hub.AddModel("acme/gated", hubtest.NewLlama(1, small))
	hub.Configure("acme/gated", hubtest.Gated("manual"))
	hub.AddRepo("acme/pickled", map[string][]byte{"pytorch_model.bin": {0}, "config.json": []byte("{}")})
	world.Must(t, hubtest.NewLlama(1, small).Write(filepath.Join(dir, "local")))
	world.Write(t, filepath.Join(dir, "list.yaml"), "models:\n- source: acme/model\n- source: acme/other\n- source: acme/nope\n")
	return hub, dir
}

// TestPictures compares what people see on terminals of 40 and 80 columns with pictures: no word is
// cut, and no progress stays behind.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, commands := range map[string][]string{
		"help":    {"df11-convert"},
		"convert": {"df11-convert acme/model", "df11-convert acme/model"},
		"push":    {"df11-convert acme/model --push", "df11-convert status list.yaml", "df11-convert batch list.yaml --push"},
		"plan":    {"df11-convert plan acme/model"},
		"inspect": {"df11-convert acme/model -q", "df11-convert inspect model-DF11"},
		"verify":  {"df11-convert acme/model -q", "df11-convert verify model-DF11"},
		"errors": {
			"df11-convert acme/nope", "df11-convert acme/gated", "df11-convert acme/pickled",
			"df11-convert acme/model --repo_id me/model-DF11", "df11-convert verfy ./model-DF11",
			"df11-convert ./local --push --original acme/other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, width := range widths {
				hub, dir := pictureHub(t)
				for _, command := range commands {
					got += onTerminal(t, hub.URL, dir, width, command, func(*display) {})
				}
			}
			checkPictures(t, name, got)
		})
	}
}

// stoppedAfter matches how long a run took until it was stopped.
var stoppedAfter = regexp.MustCompile(`stopped after \d+s`)

// TestCtrlC types Ctrl-C while a conversion waits for the hub. The bar stays, the keyboard's echo
// goes, and the command that resumes can be copied.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	got := ""
	for _, width := range widths {
		hub, dir := pictureHub(t)
		// the second file stalls after its header
		second, err := hub.ReadFile("acme/model", "main", "model-00002-of-00004.safetensors")
		world.Must(t, err)
		hub.Inject(hubtest.Fault{Name: "stall-header", Host: hubtest.HostCDN,
			Path: fmt.Sprintf("*/%x", sha256.Sum256(second)), Nth: 2, Times: hubtest.Always})
		picture := onTerminal(t, hub.URL, dir, width, "df11-convert acme/model --limit-rate 1GB -o out", func(d *display) {
			d.await(t, "27%") // 4 of 15 files
			_, err := d.keyboard.WriteString("\x03")
			world.Must(t, err)
		})
		got += stoppedAfter.ReplaceAllString(picture, "stopped after 0s") // on a quick machine
	}
	checkPictures(t, "ctrl-c", got)
}

// TestProgressOnATerminal draws a conversion twice, with a message between that appears above the
// block, and then its end, which stays. Counters and clock are the test's. Smaller terminals show
// less.
func TestProgressOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("CI", "")
	got := ""
	for _, size := range []pty.Winsize{{Cols: 80, Rows: 24}, {Cols: 40, Rows: 24}, {Cols: 80, Rows: 4}} {
		for _, ended := range []bool{false, true} {
			keyboard, tty, err := pty.Open()
			world.Must(t, err)
			world.Must(t, pty.Setsize(keyboard, &size))
			d, u, s := watched(t, keyboard, int(size.Cols), int(size.Rows)), newUI(tty, tty), midway()
			u.drawBlock(s)
			u.say("waiting 12s: the Hub answered 503 Service Unavailable and asks to try again later")
			u.drawBlock(s)
			if ended {
				s.Ended, s.Failed = true, true
				u.drawBlock(s)
				u.screen.Release()
				u.resume = "df11-convert acme/model --push"
				u.complain("", u.failure(errInterrupted))
			}
			world.Must(t, tty.Close())
			<-d.closed
			got += d.picture(int(size.Cols))
		}
	}
	checkPictures(t, "progress", got)
}
