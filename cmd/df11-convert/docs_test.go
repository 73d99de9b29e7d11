package main

import (
	"bytes"
	"context"
	"html"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestTroubleshootingIsComplete checks that the page has one row for each kind of error, with its
// exit code, and no other rows.
func TestTroubleshootingIsComplete(t *testing.T) {
	page := string(world.Read(t, "../../docs/troubleshooting.md"))
	documented, known := map[string]string{}, map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(page, -1) {
		documented[row[1]] = row[2]
	}
	for _, k := range ownKinds {
		known[k.name] = strconv.Itoa(k.code)
	}
	for _, k := range pipeline.Kinds() {
		known[string(k)] = strconv.Itoa(kindOf(&pipeline.Error{Kind: k}).code)
	}
	if !maps.Equal(documented, known) {
		t.Errorf("the page has %v, the program %v", documented, known)
	}
}

// TestDocumentedCommands runs the commands of the users' pages, page by page in their order, on a
// hub that serves small models under the names that the pages use.
func TestDocumentedCommands(t *testing.T) {
	for _, page := range []string{
		"README", "docs/questions", "docs/convert", "docs/publish", "docs/verify", "docs/large-models", "docs/json",
	} {
		t.Run(path.Base(page), func(t *testing.T) {
			t.Parallel()
			runPage(t, page)
		})
	}
}

// TestDocumentedDemo checks that README.md, its picture, and its recording show what the demo
// prints and draws, except for its times, its address, and its folder.
func TestDocumentedDemo(t *testing.T) {
	t.Parallel()
	_, shown, _ := strings.Cut(string(world.Read(t, "../../README.md")), "```console\n$ df11-convert demo\n")
	shown, _, _ = strings.Cut(shown, "```")
	passing := func(s string) string { // without the time, and with one name for the folder
		if at := regexp.MustCompile(`(?m)^result +(.*)`).FindStringSubmatch(s); at != nil {
			s = strings.ReplaceAll(s, at[1], "FOLDER")
		}
		return regexp.MustCompile(`(?m)^time .*`).ReplaceAllString(s, "time")
	}
	folder := t.TempDir()
	code, printed, said := program(t, "demo", "-o", folder)
	if code != exitOK {
		t.Fatal(said)
	}
	if got, want := passing(printed), passing(shown); got != want {
		t.Errorf("the page shows\n%s\nand the demo prints\n%s", shown, printed)
	}
	pixels := func(file string) []byte { return world.Pixels(t, world.Read(t, file)) }
	if !bytes.Equal(pixels(filepath.Join(folder, "df11.png")), pixels("../../docs/images/df11.png")) {
		t.Error("docs/images/df11.png isn't what the demo draws: copy that")
	}
	recorded := string(world.Read(t, "../../docs/images/demo.svg"))
	recorded = recorded[strings.LastIndex(recorded, "<g "):] // its last frame
	recorded = html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(recorded, ""))
	letters := func(s string) string { // without what a terminal's width, a run, and a moment change
		return regexp.MustCompile(`\s|http:[/\d.:]*|/tmp/df11-demo-\d+|FOLDER`).ReplaceAllString(s, "")
	}
	for line := range strings.Lines(passing(printed + said)) {
		if !strings.Contains(line, "100%") && !strings.Contains(letters(recorded), letters(line)) {
			t.Errorf("docs/images/demo.svg lacks %q: record it again with docs/images/record.py", line)
		}
	}
}

// TestReadmeListsCommands checks that README.md's table has the commands of the program, but for
// those that it shows elsewhere, and no others.
func TestReadmeListsCommands(t *testing.T) {
	_, table, _ := strings.Cut(string(world.Read(t, "../../README.md")), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n\n`df11-convert COMMAND")
	listed, elsewhere := map[string]bool{}, map[string]bool{"convert": true, "demo": true, "help": true, "completion": true}
	for _, m := range regexp.MustCompile("`df11-convert ([a-z]+) [A-Z0-9]+`").FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
	}
	for _, c := range rootCommand(newUI(os.Stdout, os.Stderr), nil).Commands() {
		if c.IsAvailableCommand() && !elsewhere[c.Name()] && !listed[c.Name()] {
			t.Errorf("README.md lacks %s", c.Name())
		}
		delete(listed, c.Name())
	}
	if len(listed) > 0 {
		t.Errorf("README.md has commands that the program lacks: %v", listed)
	}
}

// TestDocumentedFlags checks that some command has each flag that a page names, unless the code
// span begins with another program.
func TestDocumentedFlags(t *testing.T) {
	// of hf, docker and df11pack, named alone
	known := map[string]bool{"local-dir": true, "gpus": true, "safe": true}
	for _, c := range allCommands() {
		c.InitDefaultHelpFlag()
		for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
	}
	known["module"] = true                                         // of org/name--module.Class
	known["disable-dynamic-vram"], known["bf16-unet"] = true, true // ComfyUI's
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatal(pages, err)
	}
	for _, page := range append(pages, "../../README.md", "../../SECURITY.md") {
		for _, span := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(world.Read(t, page)), -1) {
			if regexp.MustCompile("^`(gh|hf|uvx|pip|python|brew|docker|go|bash|chrt|perf|\\.ci)[ /]").MatchString(span) {
				continue
			}
			for _, m := range regexp.MustCompile(`--([a-z][\w-]*)`).FindAllStringSubmatch(span, -1) {
				if !known[m[1]] {
					t.Errorf("%s: %s: no command has --%s", page, span, m[1])
				}
			}
		}
	}
}

// runs matches a line that runs the program, and not one that installs it.
var runs = regexp.MustCompile(`(^|[=;&(] ?)df11-convert `)

// runPage runs the lines of shell code of a page that run the program, up to the first pipe, in a
// new folder. Some pages begin with the results of another page.
func runPage(t *testing.T, page string) {
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(world.Read(t, "../../"+page+".md")), -1) {
		for line := range strings.Lines(block[1]) {
			if line, _, _ = strings.Cut(line, " | "); runs.MatchString(line) {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	if len(commands) == 0 {
		t.Fatal("the page has no commands")
	}
	srv := hubtest.Start(t, hubtest.WithUser("hf_tester", hubtest.User{Name: "tester", Orgs: []string{"my-org"}}))
	model := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 3})
	for _, name := range []string{"Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-405B"} {
		srv.AddModel(name, model)
	}
	dir, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"my-model", "my-finetune"} {
		world.Must(t, model.Write(filepath.Join(dir, name)))
	}
	world.Must(t, os.MkdirAll(filepath.Join(dir, "my-model", "eval"), 0o755))
	for _, name := range []string{"eval/scores.csv", "NOTES.md"} {
		world.Write(t, filepath.Join(dir, "my-model", name), "mine")
	}
	world.Write(t, filepath.Join(dir, "flux1-dev.safetensors"), comfyFlux(""))
	world.Write(t, filepath.Join(dir, "dict.json"), `{"lm_head": []}`) // of a pipe to jq
	run := func(command string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "sh", "-ec", command)
		c.Dir = dir
		c.Env = append(os.Environ(), "HOME="+home,
			"XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "HF_ENDPOINT="+srv.URL, "HF_TOKEN=hf_tester", "NO_PROXY=*")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s\n%s%v", command, out, err)
		}
	}
	if page == "docs/verify" {
		run("df11-convert Qwen/Qwen3-8B --push --repo-id my-org/Qwen3-8B-DF11 -o Qwen3-8B-DF11 -q")
	}
	run(strings.Join(commands, "\n"))
}

// TestReadmeRuns runs README.md's first commands, those of "Convert", and what it says about a
// folder and about publishing, as they stand, on a Hub with a tiny model of that name.
func TestReadmeRuns(t *testing.T) {
	readme := string(world.Read(t, "../../README.md"))
	s := startHub(t, "hf_any", hubtest.WithUser("hf_any", hubtest.User{Name: "you"}))
	s.AddModel("Qwen/Qwen3-8B", smallModel(1))
	t.Chdir(t.TempDir())
	world.WriteAll(t, "my-finetune", llamaFiles("BF16", 0, ""))
	world.Write(t, "flux1-dev.safetensors", comfyFlux(""))
	start, rest, _ := strings.Cut(readme, "\n## Install\n")
	_, rest, _ = strings.Cut(rest, "\n## Convert\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	var commands []string
	for _, block := range []string{start, section} {
		_, block, _ = strings.Cut(block, "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "df11-convert "); ok {
				command, _, _ = strings.Cut(command, " #")
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	if len(commands) != 7 {
		t.Fatalf("README.md has other commands: %q", commands)
	}
	for _, flags := range []string{"--push", "--against ./my-finetune"} {
		if !strings.Contains(readme, "`"+flags+"`") {
			t.Errorf("README.md doesn't name %s", flags)
		}
	}
	commands = append(commands, "./my-finetune --push", "verify ./my-finetune-DF11 --against ./my-finetune",
		"verify you/Qwen3-8B-DF11")
	for _, command := range commands {
		must(t, strings.Fields(command)...)
	}
	for _, name := range []string{"Qwen3-8B-DF11/config.json", "my-finetune-DF11/config.json", "flux1-dev-DF11/flux1-dev-DF11.safetensors"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
