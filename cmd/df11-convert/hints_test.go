package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// A mishap is a run that ends with an error, and what its hint says to do.
type mishap struct {
	cause hint.Hint     // the row of the table
	kind  pipeline.Kind // of the error; "" for any
	// blanks separate arguments; DIR is a folder of the row's own
	args   string
	limits map[string]int64 // of the Hub's rules
	before func(h *helped)
	step   string // the step of the hint that is followed; "" for all of it
	// does what the hint says, besides changing the arguments
	follow func(h *helped)
	then   string // the new arguments; "" for the same
}

// helped is the world of one mishap: a folder, and a Hub with org/model.
type helped struct {
	*testing.T
	dir string
	hub *hubtest.Server
}

func (h *helped) write(name, content string) {
	world.Write(h.T, filepath.Join(h.dir, name), []byte(content))
}

// files writes files into a folder.
func (h *helped) files(dir string, files map[string][]byte) {
	for name, b := range files {
		h.write(dir+"/"+name, string(b))
	}
}

// model writes a model into a folder.
func (h *helped) model(name string) string {
	dir := filepath.Join(h.dir, name)
	world.Must(h.T, smallModel(1).Write(dir))
	return dir
}

// shard returns the first weight file of a model in a folder.
func (h *helped) shard(name string) string {
	found, err := filepath.Glob(filepath.Join(h.model(name), "*.safetensors"))
	if err != nil || len(found) == 0 {
		h.Fatal("no weights", err)
	}
	return found[0]
}

// header changes the JSON header of a weight file.
func (h *helped) header(name, old, replacement string) {
	path := h.shard(name)
	b := world.Read(h.T, path)
	n := binary.LittleEndian.Uint64(b)
	text := strings.Replace(string(b[8:8+n]), old, replacement, 1)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	world.Write(h.T, path, append(append(out, text...), b[8+n:]...))
}

// edit replaces a text in a file once.
func (h *helped) edit(name, old, replacement string) {
	path := filepath.Join(h.dir, name)
	b := string(world.Read(h.T, path))
	if !strings.Contains(b, old) {
		h.Fatalf("%s has no %s", name, old)
	}
	world.Write(h.T, path, []byte(strings.Replace(b, old, replacement, 1)))
}

// flip changes a bit in the middle of a file.
func (h *helped) flip(name string) {
	path := filepath.Join(h.dir, name)
	b := world.Read(h.T, path)
	b[len(b)/2] ^= 1
	world.Write(h.T, path, b)
}

// llama writes a model in one file, with a config of these further members.
func (h *helped) llama(name, dtype, config string) {
	llama(h.T, filepath.Join(h.dir, name), dtype, 0, config)
}

// tensors changes the tensors of a model that llama has written with BF16.
func (h *helped) tensors(name string, change func(c *world.Checkpoint)) {
	c := llamaCheckpoint("BF16", 0)
	change(c)
	h.write(name+"/model.safetensors", string(c.File()))
}

// closed adds a gated model to the Hub.
func (h *helped) closed(repo string) {
	h.hub.AddModel(repo, smallModel(1))
	h.hub.Configure(repo, hubtest.Gated("auto"))
}

// listed adds org/odd to the Hub, and writes a list of it.
func (h *helped) listed(files map[string][]byte) {
	h.hub.AddRepo("org/odd", files)
	h.write("list.yaml", "models: [org/odd]")
}

// answers makes the Hub answer the next request in this way; two with a page, which count as
// passing.
func (h *helped) answers(kind string, status int, body string) {
	times := 1
	if strings.Contains(kind, "html") {
		times = 2
	}
	h.hub.Inject(hubtest.Fault{Host: hubtest.HostHub, Times: times, Action: hubtest.Status(status, hubtest.Header{"Content-Type": kind}, body)})
}

// dict returns a step that writes a model and a pattern dict.
func dict(text string) func(h *helped) {
	return func(h *helped) {
		if _, err := os.Stat(filepath.Join(h.dir, "m")); err != nil {
			h.llama("m", "BF16", "")
		}
		h.write("dict.json", text)
	}
}

// raw returns a weight file with this header and n bytes of data.
func raw(header string, n int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("\x00", n)
}

// trusted makes the run a job that may publish to acme/model-DF11.
func trusted(h *helped) {
	for name, value := range h.hub.JobEnv("acme/ci") {
		h.Setenv(name, value)
	}
	h.Setenv("HF_OIDC_RESOURCE", "acme/model-DF11")
}

// converted writes a model to m, and its conversion, which names no original.
func (h *helped) converted(name string) {
	h.model("m")
	h.run("DIR/m -o DIR/" + name)
}

func (h *helped) args(text string) []string {
	return strings.Fields(strings.ReplaceAll(text, "DIR", h.dir))
}

func (h *helped) run(text string) {
	if code, _, stderr := program(h.T, h.args(text)...); code != exitOK {
		h.Fatalf("%s: exit %d: %s", text, code, stderr)
	}
}

// ending is how a run ended, as --json says it.
type ending struct {
	Error struct {
		Kind          pipeline.Kind
		Message, Hint string
	}
}

// fail runs the program, whose hints must name only commands and flags that exist, and must not
// take back what nobody gave.
func (h *helped) fail(text string) (code int, f ending) {
	args := append(h.args(text), "--json")
	code, stdout, stderr := program(h.T, args...)
	if code != exitOK {
		world.Must(h.T, json.Unmarshal([]byte(stdout), &f))
	}
	if err := checkHints(args, stderr); err != nil {
		h.Error(err)
	}
	for _, m := range takenBack.FindAllStringSubmatch(f.Error.Hint, -1) {
		if !slices.Contains(args, m[1]) {
			h.Errorf("%v: nobody gave %s: %s", args, m[1], f.Error.Hint)
		}
	}
	return code, f
}

// takenBack matches a flag that a hint changes or takes back.
var takenBack = regexp.MustCompile(`(?:leave out|leave|raise) (--[a-z0-9-]+)`)

// causeOf returns the row of the table that a hint has.
func causeOf(text string) string {
	for _, h := range hint.All() {
		if text != "" && h.Is(text) && h.Cause != hint.Entry.Cause {
			return h.Cause
		}
	}
	return text
}

// TestHintsHelp follows each row of the table of hints. The error must be gone then, or be another
// one, and no chain of hints leads back to its start.
func TestHintsHelp(t *testing.T) {
	for _, row := range hint.All() {
		follows := func(m mishap) bool { return m.cause.Cause == row.Cause }
		where, other := elsewhere[row.Cause]
		switch {
		case slices.ContainsFunc(mishaps, follows) == other:
			t.Errorf("%s: either a row of mishaps follows it, or another test, named in elsewhere", row.Cause)
		case other && !strings.Contains(string(world.Read(t, "../../"+where)), "hint."+row.Cause):
			t.Errorf("%s doesn't test hint.%s", where, row.Cause)
		}
	}
	next := map[string][]string{} // the causes that following a hint leads to
	for _, m := range mishaps {
		t.Run(m.cause.Cause+" "+m.step, func(t *testing.T) { m.check(t, next) })
	}
	var visit func(path []string)
	visit = func(path []string) {
		for _, cause := range next[path[len(path)-1]] {
			if slices.Contains(path, cause) {
				t.Errorf("a ring of hints: %v, %s", path, cause)
				continue
			}
			visit(append(slices.Clone(path), cause))
		}
	}
	for cause := range next {
		visit([]string{cause})
	}
}

func (m *mishap) check(t *testing.T, next map[string][]string) {
	var limits []hubtest.Option
	for name, n := range m.limits {
		limits = append(limits, hubtest.WithLimit(name, n))
	}
	h := &helped{t, t.TempDir(), startHub(t, "hf_right", append(limits,
		hubtest.WithUser("hf_right", hubtest.User{Name: "tester", Orgs: []string{"org"}}),
		hubtest.WithUser("hf_read", hubtest.User{Name: "tester", ReadOnly: true}),
		hubtest.WithUser("hf_let_in", hubtest.User{Name: "tester", Granted: []string{"acme/gated"}}))...)}
	t.Chdir(t.TempDir())
	h.hub.AddModel("org/model", smallModel(1))
	if m.before != nil {
		m.before(h)
	}
	code, before := h.fail(m.args)
	if first, _, _ := strings.Cut(before.Error.Hint, "\n"); code == exitOK || m.kind != "" && before.Error.Kind != m.kind ||
		!m.cause.Is(first) || !strings.Contains(first, m.step) || strings.ContainsAny(first, "{}") && m.cause != hint.ListForm {
		t.Fatalf("exit %d, %+v", code, before)
	}
	if m.follow != nil {
		m.follow(h)
	}
	then := m.then
	if then == "" {
		then = m.args
	}
	code, after := h.fail(then)
	switch {
	case code == exitOK:
	case after.Error.Message == before.Error.Message:
		t.Errorf("exit %d, and still %s", code, after.Error.Message)
	default:
		t.Logf("then: %s (%s)", after.Error.Message, after.Error.Hint)
		next[m.cause.Cause] = append(next[m.cause.Cause], causeOf(after.Error.Hint))
	}
}

// TestHintsFitTheCommand checks that every command, after an error with any hint, names only flags
// that it has. Where it then has nothing to say, that must be a hint that it never comes to.
func TestHintsFitTheCommand(t *testing.T) {
	originals := []hint.Hint{hint.ArrangedHere, hint.NoOriginal, hint.GoneOriginal, hint.FolderHasOne, hint.OtherOriginal, hint.MaybeOther,
		hint.Locate, hint.ByManifest}
	cards := []hint.Hint{hint.CardUnit, hint.CardMemory, hint.NeedsCard}
	publishing := []hint.Hint{hint.RepoName, hint.Namespace, hint.Quota, hint.Visibility, hint.NotPrivate, hint.Taken,
		hint.Witness, hint.Card, hint.NoPush, hint.Contradicts, hint.PublishDF11, hint.PublishFile, hint.PartsMissing}
	writing := []hint.Hint{hint.FolderInUse, hint.Conflict, hint.Retrained, hint.Edited, hint.Stays, hint.Newer, hint.Lost}
	copying := []hint.Hint{hint.Token, hint.NotOriginal, hint.OriginalIsSource, hint.Kept, hint.HardLink, hint.LinkIncluded, hint.IncludeRepo}
	choosing := []hint.Hint{hint.LargeFile, hint.ManyFiles, hint.TooMany, hint.FileAndFlag, hint.IsDF11, hint.IsF32, hint.InexactF32,
		hint.Incomplete, hint.NameClash, hint.StaleTensor, hint.Unknown, hint.Costly, hint.ReaderRefuses, hint.Unfilled, hint.TooLarge,
		hint.WhichLayout, hint.IndexOrSingle, hint.StatedMissing, hint.TwoSets, hint.ManySingles, hint.UnusualName, hint.NoPipeline,
		hint.NoComponent}
	never := map[string][]hint.Hint{
		convertName: slices.Concat(originals, cards, []hint.Hint{hint.KernelFile}),
		"plan": slices.Concat(originals, publishing, writing, []hint.Hint{hint.Token, hint.KernelFile, hint.Occupied, hint.OwnInput, hint.NoGPU,
			hint.DiskFolder, hint.ListDiskFolder}),
		"verify": slices.Concat(cards, publishing, writing, copying, []hint.Hint{hint.KernelFile, hint.Occupied, hint.OwnInput,
			hint.DiskBudget}),
		"decode": slices.Concat(cards, publishing, copying, []hint.Hint{hint.KernelFile, hint.ArrangedHere, hint.Locate, hint.NoGPU,
			hint.DiskBudget, hint.ListDiskFolder}),
		"demo": slices.Concat(originals, cards, publishing, copying, choosing, []hint.Hint{hint.KernelFile, hint.Occupied,
			hint.DiskBudget, hint.MemoryBudget, hint.ListDiskFolder}),
	}
	never["audience"] = never[convertName]
	for _, c := range allCommands() {
		u := newUI(os.Stdout, os.Stderr)
		u.running = c
		silent, known := never[commandName(c)]
		for _, row := range hint.All() {
			text := u.failure(hint.On(errors.New("odd"), row)).Hint
			if err := lacksFlag(c, text); err != nil {
				t.Errorf("%s: %v", row.Cause, err)
			}
			ofFlag := strings.HasPrefix(row.Cause, "--") // flagHint finds those that the command has
			if is := slices.Contains(silent, row); known && !ofFlag && (text == "") != is {
				t.Errorf("%s, %s: %q, and it never comes to that: %v", commandName(c), row.Cause, text, is)
			}
		}
	}
}

// TestHintsOfLists walks the table for both commands that read a list. What they would say in a
// row's place names only flags that they have. A row whose flags they lack must be one that no list
// of models on the Hub leads to.
func TestHintsOfLists(t *testing.T) {
	elsewhere := map[string][]hint.Hint{
		"a folder or a file":               {hint.FolderInUse, hint.FileAndFlag, hint.HardLink, hint.Kept, hint.LinkIncluded, hint.OwnInput, hint.Occupied, hint.RepoName, hint.PublishDF11, hint.PublishFile},
		"a flag of convert that both lack": {hint.NotOriginal, hint.OriginalIsSource, hint.IncludeRepo, hint.Token},
		"verify and decode": {hint.NoOriginal, hint.GoneOriginal, hint.OtherOriginal, hint.MaybeOther, hint.Locate, hint.ArrangedHere,
			hint.ByManifest, hint.FolderHasOne},
		"plan":   {hint.CardUnit, hint.CardMemory, hint.NeedsCard},
		"kernel": {hint.KernelFile},
	}
	// what status doesn't ask for
	ofRuns := []hint.Hint{hint.DiskBudget, hint.ListDiskFolder, hint.NoGPU, hint.NoPush, hint.PartsMissing}
	for name, h := range hint.OtherTools { // flagHint looks whether the command has the flags
		elsewhere[name] = []hint.Hint{h}
	}
	isElsewhere := func(h hint.Hint) bool {
		for _, list := range elsewhere {
			if slices.Contains(list, h) {
				return true
			}
		}
		return false
	}
	listed := map[string]bool{} // texts that take another's place
	for _, h := range hint.All() {
		if text := h.ForList().String(); text != h.String() {
			listed[text] = true
		}
	}
	for _, command := range []string{"batch", "status"} {
		root := rootCommand(newUI(os.Stdout, os.Stderr), nil)
		c, _, err := root.Find([]string{command})
		world.Must(t, err)
		for _, h := range hint.All() {
			text := h.ForList().String()
			err := lacksFlag(c, text)
			exempt := isElsewhere(h) || command == "status" && slices.ContainsFunc(ofRuns, func(r hint.Hint) bool { return r.String() == text })
			of := strings.TrimPrefix(h.Cause, "--")
			if (err != nil) != exempt && hint.OtherTools[of] != h {
				t.Errorf("%s: %s: error %v, exempt %v", command, h.Cause, err, exempt)
			}
		}
		for name := range hint.OtherTools {
			if c.Flags().Lookup(name) == nil {
				if err := lacksFlag(c, flagHint(c, name).String()); err != nil {
					t.Errorf("%s --%s: %v", command, name, err)
				}
			}
		}
	}
	for _, h := range []hint.Hint{hint.ListTaken, hint.ListWitness, hint.ListLost, hint.ListDiskFolder} {
		if !listed[h.String()] {
			t.Errorf("nothing leads to %s", h.Cause)
		}
	}
}
