package terminal

import (
	"io"
	"strings"
	"testing"
	"time"
)

// Text that is too wide continues below its column or indented. Nothing else changes.
func TestFold(t *testing.T) {
	for _, x := range []struct {
		width    int
		in, want string
	}{
		{0, "as long as it is\n", "as long as it is\n"},
		{20, "fits\n\n  fits too\n", "fits\n\n  fits too\n"},
		{20, "twenty columns wide!\nno", "twenty columns wide!\nno"},
		{20, "a sentence that is longer\n", "a sentence that is\n  longer\n"},
		{20, "    such as something longer\n", "    such as\n      something\n      longer\n"},
		{20, "name  a text that is long\n", "name  a text that is\n      long\n"},
		{20, "one  two  three four five six\n", "one  two  three four\n          five six\n"},
		{20, "a column  too wide  rest of it\n", "a column  too wide \n  rest of it\n"},
		{20, "see an_address_that_nobody_can_break\n", "see\n  an_address_that_nobody_can_break\n"},
		{20, "模型的文件夹: it has no\n", "模型的文件夹: it has\n  no\n"},
		{20, "row  df11-convert org/name --push\n", "row  df11-convert org/name --push\n"},
		{20, "resume with: df11-convert org/name --push\n", "resume with:\n  df11-convert org/name --push\n"},
		{20, "x: df11-convert a or x: df11-convert org/name\n", "x: df11-convert a or\n  x:\n  df11-convert org/name\n"},
		{36, "  df11-convert org/name  what that does, in words\n", "  df11-convert org/name  what that\n    does, in words\n"},
		{20, "\x1b[36mhint:\x1b[m a text of 20\n", "\x1b[36mhint:\x1b[m a text of 20\n"},
	} {
		if got := Fold(x.in, x.width); got != x.want {
			t.Errorf("%d columns: %q becomes %q, want %q", x.width, x.in, got, x.want)
		}
	}
}

func TestTimeText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "59s": 59 * time.Second, "1m05s": 65 * time.Second, "2h05m": 125 * time.Minute,
		"76h00m": 76 * time.Hour,
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// Messages appear above the block, printable and on one line, and after Release below it.
func TestScreen(t *testing.T) {
	var b strings.Builder
	s := Screen{W: &b, Width: func() int { return 0 }}
	for _, x := range []struct {
		do   func()
		want string
	}{
		{func() { s.Show(nil) }, ""},
		{func() { s.Line("hint:", "a\nb\x07") }, `hint: a\nb\u0007` + "\n"},
		{func() { s.Show([]string{"one", "two"}) }, "one\x1b[K\ntwo\x1b[K\n\x1b[J"},
		{func() { s.Line("hint:", "c") }, "\x1b[2F\x1b[Jhint: c\none\x1b[K\ntwo\x1b[K\n\x1b[J"},
		{func() { s.Show([]string{"three"}) }, "\x1b[2Fthree\x1b[K\n\x1b[J"},
		{s.Release, ""},
		{func() { _, _ = s.Write([]byte("d\n")) }, "d\n"},
	} {
		if x.do(); b.String() != x.want {
			t.Errorf("%q is written, want %q", b.String(), x.want)
		}
		b.Reset()
	}
}

// Colors take no column, and a letter takes one or two, no matter how many bytes it has.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "hint": 4, "\x1b[36mhint:\x1b[m é": 7, "━╸─": 3, "模型🙂": 6,
	} {
		if got := Columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

// What a program writes keeps its lines and columns, commands nothing, and counts as written whole.
// A writer's failure is reported.
func TestScreenWrite(t *testing.T) {
	var b strings.Builder
	s := Screen{W: &b, Width: func() int { return 0 }}
	for text, want := range map[string]string{
		"a\tb\nc\n":           "a\tb\nc\n",
		"\x1b[2J\u202egnp.\n": `\u001b[2J\u202egnp.` + "\n",
		"a\xff\n":             `a\xff` + "\n",
	} {
		b.Reset()
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil || b.String() != want {
			t.Errorf("%q: %q is written, want %q; %d, %v", text, b.String(), want, n, err)
		}
	}
	r, w := io.Pipe()
	r.Close()
	s.W = w
	if n, err := s.Write([]byte("a\n")); n != 0 || err == nil {
		t.Errorf("to a closed pipe: %d, %v", n, err)
	}
}
