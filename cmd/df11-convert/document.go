package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// schemaVersion is the version of what --json prints: docs/json.md, docs/output.schema.json. New
// members do not change it.
const schemaVersion = 1

// outcome is how every document begins, whatever the command and however it ended.
type outcome struct {
	Schema  int      `json:"schema_version"`
	Command string   `json:"command"`
	OK      bool     `json:"ok"`
	Exit    int      `json:"exit_code"`
	Error   *failure `json:"error,omitempty"`
}

// failure is an error for programs: what kind, what to do, and the place, as far as the error has
// one.
type failure struct {
	Kind    string `json:"kind"` // of kinds
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Tensor  string `json:"tensor,omitempty"`
	Element *int64 `json:"element,omitempty"`
	Got     string `json:"got,omitempty"` // the bits of the element, 0x3f80
	Want    string `json:"want,omitempty"`

	hints []string // as Hint, one by one
	brief string   // Message for people
	exit  int      // code
}

// failureOf describes an error that ends the program, or one model of a batch.
func failureOf(err error) *failure {
	k := kindOf(err)
	f := &failure{Kind: k.name, Message: err.Error(), brief: brief(err), exit: k.code}
	f.advise(hint(err))
	if m, ok := errors.AsType[*verify.MismatchError](err); ok {
		f.Unit, f.Tensor, f.Element = m.Unit, m.Tensor, &m.Elem
		f.Got, f.Want = fmt.Sprintf("%#04x", m.Got), fmt.Sprintf("%#04x", m.Want)
	}
	if t, ok := errors.AsType[*forward.TensorError](err); ok {
		f.Tensor, f.Element, f.Got, f.Want = t.Tensor, &t.Elem, t.Got, t.Want
	}
	return f
}

// advise adds a hint, unless it is empty.
func (f *failure) advise(hint string) {
	if hint != "" {
		f.hints = append(f.hints, hint)
		f.Hint = strings.Join(f.hints, "\n")
	}
}

// brief is an error in words, without requests whose answer says it all.
func brief(err error) string {
	if e, ok := errors.AsType[*hub.Error](err); ok && e.Brief() != "" {
		return e.Brief()
	}
	return err.Error()
}

// outcomeOf is how a command ended: well if f is nil.
func outcomeOf(command string, f *failure) outcome {
	o := outcome{Schema: schemaVersion, Command: command, OK: f == nil, Error: f}
	if f != nil {
		o.Exit = f.exit
	}
	return o
}

// write prints the one document of a run: the outcome and then the members of what the command
// found, nil for nothing.
func (o outcome) write(w io.Writer, found any) error {
	head, err := encode(o)
	body, err2 := encode(found)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if len(body) > len("null") {
		head = append(append(head[:len(head)-1], ','), body[1:]...)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, head, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// encode is json.Marshal that leaves <, > and & in names as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// conversion is a finished conversion as --json prints it.
type conversion struct {
	*pipeline.Report
	Gain string `json:"gain"` // in one line for people
}

// where is the target, as --quiet prints it: the address if it was published, else the folder.
func where(r *pipeline.Report) string {
	return cmp.Or(r.Target.URL, r.Target.Folder)
}
