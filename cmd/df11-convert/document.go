package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// schemaVersion is the version of what --json prints: docs/json.md, docs/output.schema.json. Adding
// members doesn't change it.
const schemaVersion = 1

// outcome is how every command's document begins, also after a failure.
type outcome struct {
	Schema  int      `json:"schema_version"`
	Command string   `json:"command"`
	OK      bool     `json:"ok"`
	Exit    int      `json:"exit_code"`
	Error   *failure `json:"error,omitempty"`
}

// failure is an error for programs: its kind, what to do, and, if known, where it is.
type failure struct {
	Kind    string `json:"kind"` // as kindOf says
	Message string `json:"message"`
	Detail  string `json:"detail,omitempty"` // the whole error, if Message is shorter
	Hint    string `json:"hint,omitempty"`
	Next    string `json:"next,omitempty"` // the hint for programs: docs/json.md
	Unit    string `json:"unit,omitempty"`
	Tensor  string `json:"tensor,omitempty"`
	Element *int64 `json:"element,omitempty"`
	Got     string `json:"got,omitempty"` // the bits of the element, 0x3f80
	Want    string `json:"want,omitempty"`

	hints []string // the lines of Hint
	exit  int      // the exit code
}

// failureOf describes an error that ends the program or one model of a batch. It escapes
// unprintable characters in names, because a JSON parser would undo the escapes that stdout adds.
func failureOf(err error) *failure {
	k := kindOf(err)
	f := &failure{Kind: k.name, Message: human.Message("%s", message(err)), exit: k.code}
	if whole := human.Message("%v", err); whole != f.Message {
		f.Detail = whole
	}
	e := pipeline.ErrorOf(err)
	f.Next = e.Next
	f.advise(human.Printable(hintOf(err).String()))
	if m, ok := errors.AsType[*verify.MismatchError](err); ok {
		f.Unit, f.Tensor, f.Element = m.Unit, m.Tensor, &m.Elem
		f.Got, f.Want = fmt.Sprintf("%#04x", m.Got), fmt.Sprintf("%#04x", m.Want)
	}
	f.Tensor = cmp.Or(f.Tensor, e.Tensor)
	return f
}

// advise adds a hint, unless it's empty.
func (f *failure) advise(hint string) {
	if hint != "" {
		f.hints = append(f.hints, hint)
		f.Hint = strings.Join(f.hints, "\n")
	}
}

// outcomeOf returns how a command ended; a nil f is success.
func outcomeOf(command string, f *failure) outcome {
	o := outcome{Schema: schemaVersion, Command: command, OK: f == nil, Error: f}
	if f != nil {
		o.Exit = f.exit
	}
	return o
}

// write prints a run's document: the outcome, then the members of found, unless that's nil. oneLine
// keeps the document on one line, for output that shares a terminal with the JSON log.
func (o outcome) write(w io.Writer, found any, oneLine bool) error {
	head, err := encode(o)
	body, err2 := encode(found)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if len(body) > len("null") {
		head = append(append(head[:len(head)-1], ','), body[1:]...)
	}
	if !oneLine {
		var b bytes.Buffer
		if err := json.Indent(&b, head, "", "  "); err != nil {
			return err
		}
		head = b.Bytes()
	}
	_, err = w.Write(append(head, '\n'))
	return err
}

// encode is json.Marshal, but keeps <, >, and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// where returns the target as --quiet prints it: the address if it was published, else the folder.
func where(r *pipeline.Report) string {
	return cmp.Or(r.Target.URL, r.Target.Folder)
}
