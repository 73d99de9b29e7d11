package python_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/python"
)

func TestString(t *testing.T) {
	const in, want = "a\"\\/\b\f\n\r\t\x00\x1f\x7fé\U0001f600\xff<", `"a\"\\/\b\f\n\r\t\u0000\u001f\u007f\u00e9\ud83d\ude00\ufffd<"`
	if got := python.String(in); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIndent(t *testing.T) {
	items := []string{"1", python.List([]string{"2", "3"}, "> ", " ")}
	for _, c := range []struct{ got, want string }{
		{python.List(nil, ">", " "), "[]"},
		{python.List([]string{"1", "2"}, ">", ""), "[1, 2]"},
		{python.List(items, ">", " "), "[\n> 1,\n> [\n>  2,\n>  3\n> ]\n>]"},
		{python.Object([]string{`"a": 1`}, "", "\t"), "{\n\t\"a\": 1\n}"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
