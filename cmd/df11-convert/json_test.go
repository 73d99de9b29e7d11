package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFile is absolute, because tests change the folder.
var schemaFile, _ = filepath.Abs(filepath.FromSlash("../../docs/output.schema.json"))

var outputSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(schemaFile)
})

var nullMember = regexp.MustCompile(`(?m)^ *(".*": )?null,?$`)

// checkDocument checks the output of --json: one object, valid by docs/output.schema.json, without
// null. Empty lists are arrays, and unknown members are left out.
func checkDocument(code int, stdout string) error {
	schema, err := outputSchema()
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout)) // fails on trailing text
	if err != nil {
		return fmt.Errorf("--json printed %q: %w", stdout, err)
	}
	if err := schema.Validate(doc); err != nil {
		return fmt.Errorf("%s\n%w", stdout, err)
	}
	if null := nullMember.FindString(stdout); null != "" {
		return fmt.Errorf("the document has %s", null)
	}
	if said := fmt.Sprint(doc.(map[string]any)["exit_code"]); said != fmt.Sprint(code) {
		return fmt.Errorf("exit code %d, but the document says %s", code, said)
	}
	return nil
}

// checkLog checks that every line of stderr is a JSON object with a time, a level, and a message,
// and that the last one of a failed run has the exit code and hints.
func checkLog(code int, stderr string) error {
	var e struct {
		Time, Level, Msg string
		Exit             int `json:"exit_code"`
		Hints            []string
	}
	for line := range strings.Lines(stderr) {
		e.Time, e.Level, e.Msg = "", "", ""
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time == "" || e.Level == "" || e.Msg == "" {
			return fmt.Errorf("stderr has the line %q: %w", line, err)
		}
	}
	if code != exitOK && (e.Level != "ERROR" || e.Exit != code || len(e.Hints) == 0) {
		return fmt.Errorf("exit code %d, and the log ends with %+v", code, e)
	}
	return nil
}
