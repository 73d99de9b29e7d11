package python_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/python"
)

// document has one member of each kind that readers need.
type document struct {
	*unread
	Name  string            `json:"name"`
	N     int               `json:"n"`
	Sizes []int             `json:"sizes"`
	Map   map[string]string `json:"map"`
	Inner *inner            `json:"inner"`
	Files []inner           `json:"files"`
}

type unread struct{ X string }

type inner struct {
	Name string `json:"name"`
	Skip string `json:"-"`
	N    *int   `json:"n"`
}

// refused means that a text isn't read.
const refused = "refused"

// texts maps texts to what a document reads from them, as Python does, or to refused, whatever
// Python does.
var texts = []struct{ text, want string }{
	{`{"name": "a", "n": 1, "sizes": [1, 2], "map": {"k": "v", "K": "V"}, "inner": {"n": 2}, "files": [{"name": "f"}, null]}`,
		`{"name": "a", "n": 1, "sizes": [1, 2], "map": {"k": "v", "K": "V"}, "inner": {"n": 2}, "files": [{"name": "f"}, {}]}`},
	{`null`, `{}`}, {`{}`, `{}`}, {` { "files" : [ ] } `, `{"files": []}`},
	{`{"inner": null, "files": null, "map": null, "n": null, "name": null}`, `{}`},
	// the last of two equal members, and nothing of the first
	{`{"name": "a", "name": "b", "\u006eame": "c"}`, `{"name": "c"}`},
	{`{"inner": {"name": "a"}, "inner": {"n": 1}}`, `{"inner": {"n": 1}}`},
	{`{"map": {"a": "b"}, "map": {"c": "d", "c": "e"}}`, `{"map": {"c": "e"}}`},
	{`{"files": [{"name": "a"}, {"name": "b"}], "files": [{"n": 1}]}`, `{"files": [{"n": 1}]}`},
	{`{"n": 1, "n": null}`, `{}`},
	// names in another case
	{`{"name": "a", "Name": "b"}`, refused}, {`{"Name": "b"}`, refused}, {`{"inner": {"N": 1}}`, refused}, {`{"files": [{"NAME": 1}]}`, refused},
	{"{\"si\u017fes\": []}", `{}`}, {"{\"\u017fizes\": []}", refused}, {`{"": "a", "-": "a", "X": "b", "other": {"Name": 1}, "inner": {"-": "a", "Skip": "b"}}`, `{"inner": {}}`},
	// numbers
	{`{"n": 1e2}`, refused}, {`{"n": 1.0}`, refused}, {`{"n": true}`, refused}, {`{"n": "1"}`, refused}, {`{"n": 01}`, refused}, {`{"n": -0}`, `{}`},
	{`{"n": 9223372036854775807}`, `{"n": 9223372036854775807}`}, {`{"n": 9223372036854775808}`, refused},
	{`{"limit": [0.0, Infinity, 1E400], "low": -Infinity, "none": NaN, "n": 1}`, `{"n": 1}`},
	{`{"name": "NaN \" Infinity", "x": NaN}`, `{"name": "NaN \" Infinity"}`},
	{`{"n": NaN}`, refused}, {`{"sizes": NaN}`, refused}, {`{"sizes": [Infinity]}`, refused}, {`{"map": Infinity}`, refused}, {`{"inner": NaN}`, refused},
	{`{"x": Inf}`, refused}, {`{"x": nan}`, refused}, {`{"x": NaN NaN}`, refused}, {`{"x": 1NaN}`, refused}, {`{"x": --Infinity}`, refused}, {`{NaN: 1}`, refused},
	// text
	{"\ufeff{\"name\": \"a\"}", `{"name": "a"}`}, {"{\"name\": \"\xff\"}", refused}, {"{\"x\": \"\xed\xa0\x80\"}", refused},
	{`{"name": "\ud83d\uDE00 \\ud83d"}`, "{\"name\": \"\U0001f600 \\\\ud83d\"}"}, {`{"x": "\ud83d"}`, refused}, {`{"x": "\ude00\ud83d"}`, refused}, {`{"x": "\ud83d\\\ude00"}`, refused},
	{"{\"name\": \"a\nb\"}", refused}, {"{\"x\": \"\\x\"}", refused}, {"{\"name\": \"\x7f\ufffd\"}", "{\"name\": \"\x7f\ufffd\"}"},
	// syntax
	{``, refused}, {`[]`, refused}, {`{`, refused}, {`{"files": [`, refused}, {`{"files": [{}`, refused}, {`{"files": [{},]}`, refused}, {`{"n": 1,}`, refused},
	{`{"n" 1}`, refused}, {`{"n": 1]`, refused}, {`{"files": {}}`, refused}, {`{"inner": []}`, refused}, {`{"inner": 1}`, refused}, {`{} {}`, refused},
	{`{"x": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, refused},
}

func TestUnmarshalReadsAsPython(t *testing.T) {
	for _, c := range texts {
		got, want := document{Name: "old", N: 7, Map: map[string]string{"old": ""}, Inner: &inner{Name: "old"}}, document{}
		err := python.Unmarshal([]byte(c.text), &got)
		if c.want == refused {
			if err == nil {
				t.Errorf("%.200q: read as %+v", c.text, got)
			}
			continue
		}
		if json.Unmarshal([]byte(c.want), &want) != nil || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
	}
}

// Whatever is read equals what Python reads.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range texts {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want document
		if python.Unmarshal(text, &got) != nil {
			return
		}
		ask, err := interpreter()
		if err != nil {
			t.Skipf("no Python to compare with: %v", err)
		}
		answer := ask(text)
		if strings.TrimSpace(answer) == refused { // a loader stops there
			return
		}
		if err := json.Unmarshal([]byte(answer), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: read as %+v, Python says %s", text, got, answer)
		}
	})
}

// asPython reads one text per line, in hexadecimal, and writes what a document takes from it.
const asPython = `
import json, sys
def inner(v):
    return {"name": v.get("name"), "n": v.get("n")} if v is not None else None
for line in sys.stdin:
    try:
        v = json.loads(bytes.fromhex(line).decode().removeprefix("\ufeff")) or {}
        d = {k: v.get(k) for k in ("name", "n", "sizes", "map")}
        d["inner"] = inner(v.get("inner"))
        d["files"] = v.get("files") and [inner(x) for x in v["files"]]
        print(json.dumps(d), flush=True)
    except (ValueError, RecursionError):
        print("refused", flush=True)
`

// interpreter starts Python once, and returns a function that asks it to read a text.
var interpreter = sync.OnceValues(func() (ask func(text []byte) string, err error) {
	cmd := exec.Command("python3", "-c", asPython)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	return func(text []byte) string {
		fmt.Fprintln(in, hex.EncodeToString(text))
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return err.Error()
		}
		return line
	}, cmd.Start()
})

// TestTypesInWords checks that an error about a value of another type says so without Go's types.
func TestTypesInWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"n": "x"}`: "n: string instead of an integer", `{"n": 1.5}`: "n: number 1.5 instead of an integer", `{"s": 1}`: "s: number instead of a string",
		`{"l": {}}`: "l: object instead of a list", `{"m": []}`: "m: array instead of an object", `{"b": 0}`: "b: number instead of true or false",
		`{"o": 1}`: "o: number instead of an object", `{"o": []}`: "o: array instead of an object", `{"o": "x"}`: "o: string instead of an object", `{"os": true}`: "os: bool instead of a list",
		`{"os": [{"x": {}}, [1]]}`: "os: array instead of an object", `[]`: "array instead of an object",
		`{"f": "1"}`: "f: string instead of a number", `{"l": [1]}`: "l: number instead of a string",
	} {
		var v struct {
			N int            `json:"n"`
			S string         `json:"s"`
			L []string       `json:"l"`
			M map[string]int `json:"m"`
			B bool           `json:"b"`
			F float64        `json:"f"`
			O *inner         `json:"o"`
			A []inner        `json:"os"`
		}
		if err := python.Unmarshal([]byte(text), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestWhyNotJSON checks that an error about the form of a text names the place, and says nothing in
// the words of encoding/json, however the text is read.
func TestWhyNotJSON(t *testing.T) {
	for text, want := range map[string]string{
		"": "it's empty", " \n": "it's empty", "{": "it ends too early", `{"n": 1`: "it ends too early", `{"x": [1, `: "it ends too early",
		`{"x": "a`: "it ends too early", `{"files": [{"name": "f"}`: "it ends too early",
		"{\n  \"n\": 1,\n}": `line 3: '}' can't be there`, "{\"x\": {\n\n\"y\": [1,,2]}}": `line 3: ',' can't be there`, "\ufeff{\n'n': 1}": `line 2: '\'' can't be there`,
		"{\"n\" 1}": `line 1: '1' can't be there`, "{\"n\": 1\n\"x\": NaN}": `line 2: '"' can't be there`, "{\"low\": -Infinity,\n\"x\": é}": `line 2: 'é' can't be there`,
		"{\"x\":\n\"a\nb\"}": "line 2 ends too early", `{"n": 1} x`: "text after the JSON value", `{"n": 1}}`: "text after the JSON value",
	} {
		if err := python.Unmarshal([]byte(text), new(document)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if _, _, err := python.Members([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("members of %q: %v, want %s", text, err, want)
		}
	}
	for _, c := range texts { // however it is cut off
		for n := range min(len(c.text), 100) {
			err := python.Unmarshal([]byte(c.text[:n]), new(document))
			if err != nil && regexp.MustCompile(`EOF|json:|invalid character|looking for`).MatchString(err.Error()) {
				t.Errorf("%q: %v", c.text[:n], err)
			}
		}
	}
}
