package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestMain puts the test binary into the PATH as df11-convert, for scripts and for tests that kill
// it. Runs in this process keep their work in a folder of the test.
func TestMain(m *testing.M) {
	testscript.Main(world.Quick(ownCache{m}), map[string]func(){"df11-convert": main})
}

type ownCache struct{ world.Runner }

func (c ownCache) Run() int {
	dir, err := os.MkdirTemp("", "df11-cache-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.Setenv("XDG_CACHE_HOME", dir)
	return c.Runner.Run()
}

// TestScript runs the scripts in testdata/script. Each has a hub of its own, which HF_ENDPOINT
// names, with the users tester (token hf_tester, set in HF_TOKEN), reader (hf_reader, may not
// write) and stranger (hf_stranger), and these commands in addition to the usual ones:
//
//	code N PROGRAM ARGS…       runs a program that must end with exit code N; holds what --json prints against the schema, and
//	                           what --log-format=json writes against the form of the log
//	model TARGET KIND…         makes a model in a folder (a path with a dot or slash first) or a repo; kinds in models and sources
//	repo NAME private|manual|auto|file=PATH…   changes a repo, or makes one with empty files; manual and auto are gates; auto admits anyone who agrees
//	dataset NAME [private|manual|auto]   makes a data set
//	fault NAME[:N|:always]  spoils answers of the hub
//	flip FILE TENSOR           flips a bit in the middle of a tensor
//	pull REPO DIR              writes a repo's files into a folder
//	in REPO FILE…              the repo must hold the files; with ! none of them
//	commit NAME [FILE[=PATH]…] adds a commit to a repo, which deletes these files, or puts what lies at PATH there; else it changes
//	                           a small file
//	requests PATTERN N         the hub must have seen that many requests
//	mistakes FILE              runs each command line, which must end with 2 and answer with all texts behind "=>"
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": cmdCode, "model": cmdModel, "repo": cmdRepo, "dataset": cmdDataset, "fault": cmdFault, "flip": cmdFlip, "pull": cmdPull,
			"in": cmdIn, "requests": cmdRequests, "mistakes": cmdMistakes, "commit": cmdCommit,
			"metadata": cmdMetadata,
		},
	})
}

// hubKey is where a script keeps its hub.
type hubKey struct{}

func setUpScript(env *testscript.Env) error {
	srv := hubtest.New(
		hubtest.WithUser("hf_tester", hubtest.User{Name: "tester", Orgs: []string{"org"}}),
		hubtest.WithUser("hf_reader", hubtest.User{Name: "reader", ReadOnly: true}),
		hubtest.WithUser("hf_stranger", hubtest.User{Name: "stranger"}),
	)
	env.Values[hubKey{}] = srv
	t := env.T()
	env.Defer(func() {
		srv.Close()
		if v := srv.Violations(); len(v) > 0 {
			t.Fatal(strings.Join(v, "\n"))
		}
	})
	env.Setenv("HF_ENDPOINT", srv.URL)
	env.Setenv("HF_TOKEN", "hf_tester")
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "home", ".cache"))
	env.Setenv("NO_PROXY", "*")
	return nil
}

func server(ts *testscript.TestScript) *hubtest.Server { return ts.Value(hubKey{}).(*hubtest.Server) }

func cmdCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS…")
	}
	err, got := ts.Exec(args[1], args[2:]...), 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
	ts.Check(checkHints(args[2:], ts.ReadFile("stderr")))
	if slices.Contains(args, "--json") {
		ts.Check(checkDocument(got, ts.ReadFile("stdout")))
	}
	if slices.Contains(args, "--log-format=json") {
		ts.Check(checkLog(got, ts.ReadFile("stderr")))
	}
}

// hintedCommand matches a command that a hint names, after a colon or as the page to see.
var hintedCommand = regexp.MustCompile(`(?m)^hint: .*(?:: |see )df11-convert (.*)$`)

// checkHints parses the commands in hints as the program would, and looks up the flags in hints
// among those of the command that failed.
func checkHints(args []string, stderr string) error {
	root := rootCommand(newUI(os.Stdout, os.Stderr), nil)
	for line := range strings.Lines(stderr) {
		text, is := strings.CutPrefix(line, "hint: ")
		if !is {
			continue
		}
		c, _, err := root.Find(args)
		if err := lacksFlag(c, text); err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
		if err != nil && len(flagsIn(text)) > 0 {
			return fmt.Errorf("%v: %w: %s", args, err, line)
		}
	}
	for _, m := range hintedCommand.FindAllStringSubmatch(stderr, -1) {
		root := rootCommand(newUI(os.Stdout, os.Stderr), nil)
		root.InitDefaultVersionFlag()
		c, rest, err := root.Find(strings.Fields(m[1]))
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if words := c.Flags().Args(); err == nil && c == root && len(words) > 0 {
			err = wrongCommand(root, words[0])
		}
		if err != nil && !errors.Is(err, pflag.ErrHelp) {
			return fmt.Errorf("%s: %w", m[0], err)
		}
	}
	return nil
}

// lacksFlag returns an error if a hint names a flag that a command lacks, or with a command's name one
// that that one lacks.
func lacksFlag(c *cobra.Command, text string) error {
	c.InitDefaultHelpFlag()
	for _, flag := range flagsIn(text) {
		if !hasFlag(c, flag) {
			return fmt.Errorf("%s has no flag %s: %s", c.Name(), flag, text)
		}
	}
	for _, m := range flagOfCommand.FindAllStringSubmatch(text, -1) {
		if of, _, err := c.Root().Find(m[1:2]); err != nil || of.Flag(m[2]) == nil {
			return fmt.Errorf("there is no %s: %s", m[0], text)
		}
	}
	return nil
}

// flagOfCommand matches a flag with the name of its command.
var flagOfCommand = regexp.MustCompile(`\b(verify|batch) --([a-z-]+)`)

// models are the kinds that the command model knows.
func models(kinds []string) *hubtest.Model {
	o := hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2}
	family, seed := hubtest.NewLlama, uint64(1)
	for _, k := range kinds {
		switch k {
		case "sharded":
			o.ShardBytes = 30_000
		case "tied":
			o.Tied = true
		case "storetied":
			o.Tied, o.StoreTied = true, true
		case "extra":
			o.ExtraFiles = true
		case "other":
			seed = 2
		case "qwen3":
			family = hubtest.NewQwen3
		case "unknown":
			o.Extra = map[string][]byte{"config.json": []byte(`{"architectures": ["NeverHeardOfForCausalLM"], "model_type": "never_heard_of"}`)}
		}
	}
	return family(seed, o)
}

// sources makes models that the hub has no generator for; it returns nil for other kinds.
func sources(kind string) map[string][]byte {
	return map[string]map[string][]byte{
		"f32":      llamaFiles("F32", 1, ""),
		"f32exact": llamaFiles("F32", 0, ""),
		"f16":      llamaFiles("F16", 0, ""),
		"bf16":     llamaFiles("BF16", 0, ""),
		"flux":     fluxFiles(),
		"denoiser": denoiserFiles(),
		"comfy":    {"flux1-dev.safetensors": comfyFlux("")},
		"nowhere":  {"wan2.2.safetensors": comfyFlux("wan.")},
		"prefixed": {"flux1-dev.safetensors": comfyFlux("model.diffusion_model.")},
		"several":  {"all-in-one.safetensors": severalModels()},
		"experts":  expertFiles(2),
		"noise":    noiseFiles(),
	}[kind]
}

// noiseFiles are those of a model whose weights all have the exponent 255, which DF11 reserves.
func noiseFiles() map[string][]byte {
	files := llamaFiles("BF16", 0, "")
	weights := files["model.safetensors"]
	for i := 8 + binary.LittleEndian.Uint64(weights); i < uint64(len(weights)); i++ {
		weights[i] = 0xff
	}
	return files
}

func cmdModel(ts *testscript.TestScript, _ bool, args []string) {
	if files := sources(args[len(args)-1]); files != nil {
		if strings.HasPrefix(args[0], "org/") {
			server(ts).AddRepo(args[0], files)
			return
		}
		for name, b := range files {
			write(ts, filepath.Join(args[0], name), b)
		}
		return
	}
	m := models(args[1:])
	if !strings.HasPrefix(args[0], ".") && !filepath.IsAbs(args[0]) {
		server(ts).AddModel(args[0], m)
		return
	}
	ts.Check(m.Write(ts.MkAbs(args[0])))
}

func write(ts *testscript.TestScript, name string, b []byte) {
	name = ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o777))
	ts.Check(os.WriteFile(name, b, 0o666))
}

func cmdRepo(ts *testscript.TestScript, _ bool, args []string) {
	for _, a := range args[1:] {
		switch a {
		case "private":
			server(ts).Configure(args[0], hubtest.Private())
		case "manual", "auto":
			server(ts).Configure(args[0], hubtest.Gated(a))
		default:
			server(ts).AddRepo(args[0], map[string][]byte{strings.TrimPrefix(a, "file="): {0}})
		}
	}
}

func cmdDataset(ts *testscript.TestScript, _ bool, args []string) {
	var opts []hubtest.RepoOption
	for _, a := range args[1:] {
		if a == "private" {
			opts = append(opts, hubtest.Private())
		} else {
			opts = append(opts, hubtest.Gated(a))
		}
	}
	server(ts).AddDataset(args[0], opts...)
}

func cmdFault(ts *testscript.TestScript, _ bool, args []string) {
	for _, a := range args {
		f, err := hubtest.ParseFault(a)
		ts.Check(err)
		server(ts).Inject(f)
	}
}

func cmdFlip(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	h, err := safetensors.ReadHeader(strings.NewReader(string(b)), int64(len(b)))
	ts.Check(err)
	x, ok := h.Lookup(args[1])
	if !ok {
		ts.Fatalf("no tensor %s", args[1])
	}
	b[h.DataStart()+(x.Begin+x.End)/2] ^= 4
	ts.Check(os.WriteFile(name, b, 0o666))
}

// cmdMetadata writes __metadata__, a JSON object, into the header of a weight file.
func cmdMetadata(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	b, err = withMetadata(b, args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(name, b, 0o666))
}

// withMetadata returns a weight file with another __metadata__, a JSON object, in place of its own.
func withMetadata(b []byte, object string) ([]byte, error) {
	h, err := safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	_, tensors, found := strings.Cut(string(h.Raw), "},")
	if !found || len(h.Metadata) == 0 {
		return nil, errors.New("the file has no metadata")
	}
	raw := `{"__metadata__":` + object + "," + tensors
	raw += strings.Repeat(" ", (8-len(raw)%8)%8)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), []byte(raw), b[h.DataStart():]), nil
}

func cmdPull(ts *testscript.TestScript, _ bool, args []string) {
	for p := range server(ts).Files(args[0], "main") {
		b, err := server(ts).ReadFile(args[0], "main", p)
		ts.Check(err)
		write(ts, filepath.Join(args[1], filepath.FromSlash(p)), b)
	}
}

func cmdIn(ts *testscript.TestScript, neg bool, args []string) {
	files := server(ts).Files(args[0], "main")
	if files == nil && !neg {
		ts.Fatalf("there is no repo %s", args[0])
	}
	for _, p := range args[1:] {
		if _, ok := files[p]; ok == neg {
			ts.Fatalf("%s holds %s: %v", args[0], p, ok)
		}
	}
}

func cmdRequests(ts *testscript.TestScript, _ bool, args []string) {
	if n := server(ts).Count("", args[0]); fmt.Sprint(n) != args[1] {
		ts.Fatalf("%d requests for %s", n, args[0])
	}
}

func cmdCommit(ts *testscript.TestScript, _ bool, args []string) {
	change := map[string][]byte{}
	for _, a := range args[1:] {
		name, local, put := strings.Cut(a, "=")
		if change[name] = nil; put {
			change[name] = []byte(ts.ReadFile(local))
		}
	}
	if len(change) == 0 {
		change["NOTES.md"] = []byte("new")
	}
	server(ts).Push(args[0], "main", change)
}

func cmdMistakes(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		command, answer, ok := strings.Cut(line, "=>")
		if !ok {
			continue
		}
		cmdCode(ts, false, append([]string{"2", "df11-convert"}, strings.Fields(command)...))
		for text := range strings.SplitSeq(answer, "|") {
			if stderr := ts.ReadFile("stderr"); !strings.Contains(stderr, strings.TrimSpace(text)) {
				ts.Fatalf("%q: no %q in %s", command, strings.TrimSpace(text), stderr)
			}
		}
		if ts.ReadFile("stdout") != "" {
			ts.Fatalf("%q: prints to stdout", command)
		}
	}
}
