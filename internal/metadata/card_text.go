package metadata

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// cardFuncs are the functions of card.md.tmpl.
var cardFuncs = template.FuncMap{
	"code": code, "plain": plainText, "count": human.Grouped,
	"bytes":  human.Bytes,
	"reason": ReasonText,
	"python": strconv.QuoteToASCII,
	"shell":  human.PosixWord, // on one line of a fenced block, where a backtick ends nothing
}

// code makes a code span of hostile text, in a line or in a table cell. One backslash keeps a pipe
// from ending the cell. After a backslash it takes two more, because readers disagree about what a
// pair of them means.
func code(s string) string { return "`" + inCode.Replace(s) + "`" }

var inCode = strings.NewReplacer("`", "'", "\n", " ", "\r", " ", `\\`, `\\`, `\|`, `\\\|`, "|",
	`\|`)

// plainText keeps hostile text from acting as Markdown, HTML, or a link, in a line or in a table
// cell.
func plainText(s string) string { return inText.Replace(s) }

var inText = strings.NewReplacer("\n", " ", "\r", " ", "<", "&lt;", `\`, `\\`, "|", `\|`, "`",
	"\\`", "[", `\[`, "*", `\*`, "_", `\_`, "~", `\~`,
	"://", `:\//`, "www.", `www\.`) // GitHub makes links of the last two

// modelLink returns a link to a model on the Hub, or a code span if repo isn't a Hub id.
func modelLink(repo string) string { return linkInto(repo, "") }

// linkInto is modelLink to a place in the repo, such as "/tree/COMMIT".
func linkInto(repo, place string) string {
	if !names.IsRepo(repo) || !strings.Contains(repo, "/") {
		return code(repo)
	}
	return "[" + strings.ReplaceAll(repo, "_", "\\_") + "](https://huggingface.co/" + repo + place + ")"
}

// Base names the original, with a link to it.
func (in CardInput) Base() string { return in.baseAt("") }

// baseAt is Base with a link to a place in the repo.
func (in CardInput) baseAt(place string) string {
	if in.Elsewhere {
		return code(in.BaseModel)
	}
	return linkInto(in.BaseModel, place)
}

// Headline is Base, with a link to the commit and with the revision if that isn't main's.
func (in CardInput) Headline() string {
	if in.Revision == "" || !names.IsCommit(in.Commit) {
		return in.Base()
	}
	return in.baseAt("/tree/"+in.Commit) + " at revision " + code(in.Revision) + ", not main,"
}

// Coded returns the totals of the units stored as DF11.
func (in CardInput) Coded() (sum struct{ NUnits, NWeights int64 }) {
	for _, u := range in.Manifest.Units {
		if u.Status == DF11 {
			sum.NUnits, sum.NWeights = sum.NUnits+1, sum.NWeights+u.NWeights
		}
	}
	return sum
}

// RunsInF32 reports whether the original runs in F32 unless its user says otherwise: its weights
// are stored so, and its config doesn't ask for BF16.
func (in CardInput) RunsInF32() bool {
	config, err := catalog.ReadConfig(names.Config, in.Config)
	return in.F32Bytes > 0 && (err != nil || !config.AsksForBF16())
}

// KeptBF16 returns the units that DF11 can't hold.
func (in CardInput) KeptBF16() []Unit {
	return filter(in.Manifest.Units, func(u Unit) bool { return u.Status == BF16 })
}

func filter[T any](list []T, keep func(T) bool) (kept []T) {
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// TakenOver counts the weight files that this run didn't verify itself.
func (in CardInput) TakenOver() int64 {
	return int64(len(filter(in.Manifest.Outputs,
		func(f OutputFile) bool { return f.Earlier != nil })))
}

// Percent returns the size after conversion, with one decimal.
func (in CardSizes) Percent() string {
	if in.SourceBytes <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", human.Percentage(in.OutputBytes, in.SourceBytes))
}

// Usage returns which section of the card shows how to load the model.
func (in CardInput) Usage() string {
	switch {
	case in.Plan.Layout == catalog.ComfyUI:
		return "comfyui"
	case in.Plan.HoldsParameters():
		return "df11"
	case in.Plan.Layout == catalog.Diffusers || in.Plan.Layout == catalog.DiffusersSingle:
		return "diffusers"
	case strings.HasPrefix(in.Plan.Loader.Via, "bfloat16_model"):
		return "class"
	}
	return "auto"
}

// className matches the class at the start of a loader's Class.
var className = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

// Readers returns the readers with a verdict.
func (in CardInput) Readers(v plan.Verdict) []plan.Reader {
	return filter(in.Plan.Readers, func(r plan.Reader) bool { return r.Loads == v })
}

// Untested reports whether no one has loaded a model of this class in any known reader.
func (in CardInput) Untested() bool {
	return len(in.Plan.Readers) > 0 && len(in.Readers(plan.Loads)) == 0
}

// Refused returns the reader that the model is for, if every reader refuses it, and nil otherwise.
func (in CardInput) Refused() *plan.Reader { return in.Plan.Refused() }

// Class returns the Python class to build, or "" if the catalog doesn't know it.
func (in CardInput) Class() string { return className.FindString(in.Plan.Loader.Class) }

// AutoClass returns the auto class of transformers for a model whose own class comes with the model
// or isn't known, and "" otherwise.
func (in CardInput) AutoClass() string {
	if c := cmp.Or(in.Class(), "AutoModel"); strings.HasPrefix(c, "Auto") && in.Usage() == "class" {
		return c
	}
	return ""
}

// MakesImages reports whether the pipeline makes a picture from a prompt alone, by the task that
// the source or the Hub states, or else by its classes.
func (in CardInput) MakesImages() bool {
	isTask := strings.Contains(in.Class(), "2D")
	if task := in.Source.PipelineTag.or(in.PipelineTag); task != nil {
		isTask = slices.Contains(task, "text-to-image")
	}
	return in.Pipeline != "" && isTask && !takesImage.MatchString(in.Pipeline)
}

// takesImage matches pipelines that need a picture to start from.
var takesImage = regexp.MustCompile(`Control|Edit|Fill|Img2Img|Inpaint|Kontext|Layered|Redux`)

// Command returns how to run the program. Only a release can be run by uvx: until then, anyone may
// own that name.
func (t Tool) Command() string {
	if released.MatchString(t.Version) {
		return "uvx df11-convert"
	}
	return "df11-convert"
}

var released = regexp.MustCompile(`^v?\d+\.\d+\.\d+$`)

// Trust returns the argument that lets transformers run code from the model.
func (in CardInput) Trust() string {
	if in.Plan.Loader.RemoteCode {
		return ", trust_remote_code=True"
	}
	return ""
}

// TrustOwn is Trust for df11, which wants the names of other repos whose code it is to run.
func (in CardInput) TrustOwn() string {
	repos := in.Plan.Code.Repos
	if !in.Plan.Loader.RemoteCode || len(repos) == 0 {
		return in.Trust()
	}
	if len(repos) == 1 {
		return ", trust_remote_code=" + quotedList(repos)
	}
	return ", trust_remote_code=[" + quotedList(repos) + "]"
}

// CodeRuns says, in a comment, whose code builds the model. It claims that files are in the repo
// only if they are.
func (in CardInput) CodeRuns() string {
	code := in.Plan.Code
	switch {
	case len(code.Repos) > 0:
		return "The class is code of " + quotedList(code.Repos) + ", not of this repo: trust_remote_code runs the " +
			"Python files that main there holds today, because no commit pins them. Read them first."
	case len(code.Missing) > 0:
		return "The class is code of the model's own, but this repo lacks " + quotedList(code.Missing) + "."
	}
	return "The class comes with the model: trust_remote_code=True runs its Python files, which are in this " +
		"folder. Read them first."
}

// quotedList lists hostile texts on one line of a fenced block.
func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, x := range list {
		quoted[i] = strconv.QuoteToASCII(x)
	}
	return strings.Join(quoted, ", ")
}

// OnlyTransformers4 reports whether the model doesn't load with transformers 5, or no one has
// tried.
func (in CardInput) OnlyTransformers4() bool {
	return strings.Contains(in.Plan.Loader.Transformers, "<")
}

// Install returns the pip line. dfloat11 0.5.0 imports pkg_resources, which setuptools 82 dropped.
// PyTorch 2.11 is for CUDA 13, but dfloat11[cuda12] brings CuPy for CUDA 12.
func (in CardInput) Install() string {
	line := `pip install "torch<2.11" "setuptools<81" "transformers` + in.Plan.Loader.Transformers +
		`" "dfloat11[cuda12]"`
	if in.Usage() == "diffusers" {
		// Wan and others clean prompts with ftfy, which diffusers doesn't install
		line += " diffusers ftfy"
	}
	return line
}

// InstallOwn returns the pip line for df11, which comes with the program. Only a release can be
// installed by its name: until then, anyone may own it.
func (in CardInput) InstallOwn() string {
	packages := "torch transformers"
	if in.IsPipeline() {
		packages = "torch diffusers transformers accelerate"
	}
	if released.MatchString(in.Manifest.Tool.Version) {
		return "pip install df11-convert " + packages
	}
	return "pip install " + packages + "  # and the wheel of df11-convert, which holds df11"
}

// PathOwn returns the arguments that name the model in Python: the repo and its branch, or the
// folder.
func (in CardInput) PathOwn() string {
	path := strconv.QuoteToASCII(cmp.Or(in.Repo, in.Name))
	if in.Branch != "" {
		path += ", revision=" + strconv.QuoteToASCII(in.Branch)
	}
	return path
}

// Spec returns what names the model on the command line: the repo and its branch, or the folder.
func (in CardInput) Spec() string {
	if in.Branch != "" {
		return in.Repo + "@" + in.Branch
	}
	return cmp.Or(in.Repo, in.Name)
}

// IsPipeline reports whether the model is a part of a diffusers pipeline.
func (in CardInput) IsPipeline() bool { return in.Plan.Layout.Family() == catalog.Diffusers }

// Talks reports whether the model generates text, by the class that its config names.
func (in CardInput) Talks() bool {
	config, err := catalog.ReadConfig(names.Config, in.Config)
	return err == nil && in.Plan.Layout.Family() == catalog.Transformers &&
		strings.HasSuffix(config.Class(), "ForCausalLM")
}

// Sees reports whether the model generates text from pictures, by the class that its config names
// and the task that the source or the Hub states.
func (in CardInput) Sees() bool {
	config, err := catalog.ReadConfig(names.Config, in.Config)
	return err == nil && in.Plan.Layout.Family() == catalog.Transformers &&
		strings.HasSuffix(config.Class(), "ForConditionalGeneration") &&
		slices.Contains(in.Source.PipelineTag.or(in.PipelineTag), "image-text-to-text")
}

// verdict returns what is known of a reader, or "".
func (in CardInput) verdict(name string) plan.Verdict {
	for _, r := range in.Plan.Readers {
		if r.Name == name {
			return r.Loads
		}
	}
	return ""
}

// HasOfficial reports whether the official loader may load the model.
func (in CardInput) HasOfficial() bool {
	return in.Usage() != "df11" && !in.Nameless() && in.verdict(plan.OfficialReader) != plan.Refuses
}

// Nameless reports whether nothing says which class the model is, so only its user can build it.
func (in CardInput) Nameless() bool {
	config, err := catalog.ReadConfig(names.Config, in.Config)
	return in.Usage() == "class" && (err != nil || config.Class() == "")
}

// LoadsInPython returns the readers in which a model of the class was loaded and run.
func (in CardInput) LoadsInPython() []plan.Reader {
	return filter(in.Readers(plan.Loads), func(r plan.Reader) bool { return r.Name != plan.ComfyReader })
}

// Doubt returns why a reader is untested, or "" if it isn't.
func (in CardInput) Doubt(name string) string {
	for _, r := range in.Readers(plan.Untested) {
		if r.Name == name {
			return cmp.Or(r.Why, "no one has loaded such a model there")
		}
	}
	return ""
}

// OthersUntested returns the readers that no one has tried, besides those whose code the card
// shows.
func (in CardInput) OthersUntested() []plan.Reader {
	return filter(in.Readers(plan.Untested), func(r plan.Reader) bool {
		return r.Name != plan.OwnReader && (r.Name != plan.OfficialReader || !in.HasOfficial())
	})
}

// Origin returns a phrase that says where the list of compressed modules comes from.
func (in CardInput) Origin() string {
	kind, detail, _ := strings.Cut(in.Plan.Provenance, ":")
	from, note, _ := strings.Cut(detail, " ") // such as "(as transcribed by df11pack)"
	switch {
	case in.Plan.Derived():
		return "was derived from the tensor names and shapes of this model; no release by the authors of DFloat11 confirms it"
	case kind == "published":
		return strings.TrimSpace("is that of the published " + modelLink(from) + " " + note)
	case kind == "extended":
		return strings.TrimSpace("is that of [" + plan.ComfyReader + "](https://github.com/mingyi456/" +
			plan.ComfyReader + "/tree/" + from + ") " + note)
	case kind == "given":
		return "was given on the command line"
	case kind == "derived":
		return "was derived from the source code of the model class"
	}
	return "comes from " + code(in.Plan.Provenance)
}

// GPUs returns the rows of the table of GPUs, with the longest context of one sequence if the
// config says what a token takes.
func (in CardInput) GPUs() []fits.Fit {
	w := fits.Weights{BF16: in.SourceBytes, DF11: in.OutputBytes, Largest: in.LargestModule()}
	rows, cache := w.Table(), fits.ReadCache(in.Config)
	for i, r := range rows {
		rows[i] = w.On(r.N, r.GiB, cache, 0, 1)
	}
	return rows
}

// HasContexts reports whether the table of GPUs says how long a context fits.
func (in CardInput) HasContexts() bool {
	return slices.ContainsFunc(in.GPUs(), func(f fits.Fit) bool { return f.DF11Context > 0 })
}

// LargestModule returns the BF16 size of the largest module stored as DF11.
func (in CardInput) LargestModule() int64 {
	kept := in.KeptBF16()
	return in.Plan.LargestModule(func(i int) bool {
		return slices.ContainsFunc(kept,
			func(k Unit) bool { return k.Path == in.Plan.Units[i].Path })
	})
}
