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
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// cardFuncs are the words of card.md.tmpl.
var cardFuncs = template.FuncMap{
	"code": code, "plain": plainText, "link": modelLink, "count": human.Grouped,
	"reason": ReasonText,
	"python": strconv.QuoteToASCII,
	"shell":  func(s string) string { return human.ShellWord(inShell.Replace(s)) },
}

// code makes a code span of hostile text, in a line or in a cell of a table. A pipe is kept from
// ending the cell by one backslash; where the text has one there, by two more, since readers
// disagree whether a pair of them is one.
func code(s string) string { return "`" + inCode.Replace(s) + "`" }

var inCode = strings.NewReplacer("`", "'", "\n", " ", "\r", " ", `\\`, `\\`, `\|`, `\\\|`, "|",
	`\|`)

// plainText keeps hostile text from acting as Markdown or HTML, in a line or in a cell of a table:
// what others have named is neither markup nor a link.
func plainText(s string) string { return inText.Replace(s) }

var inText = strings.NewReplacer("\n", " ", "\r", " ", "<", "&lt;", `\`, `\\`, "|", `\|`, "`",
	"\\`", "[", `\[`, "*", `\*`, "_", `\_`, "~", `\~`,
	"://", `:\//`, "www.", `www\.`) // the last two would become links by themselves

// inShell keeps a name on its line, in its code block.
var inShell = strings.NewReplacer("\n", " ", "\r", " ", "`", " ")

// modelLink links to a model on the Hub.
func modelLink(repo string) string {
	if !names.IsRepo(repo) || !strings.Contains(repo, "/") {
		return code(repo)
	}
	return "[" + strings.ReplaceAll(repo, "_", "\\_") + "](https://huggingface.co/" + repo + ")"
}

// reasons says in words why DF11 cannot hold a unit (docs/format.md §6, §9).
var reasons = map[string]string{
	"exponent_range": "has weights of 2^113 or more, Inf or NaN",
	"too_many_luts":  "needs more lookup tables than the decoder has room for",
	"shared_memory":  "packs more weights into a block than the decoder has memory for",
	"official_crash": "has too few different exponents for the format",
	"too_large":      "has more than 2^31-1 weights",
	"empty":          "has no weights",
}

// ReasonText says in words why a unit stays in BF16. An unknown reason is repeated, made safe for a
// line of Markdown.
func ReasonText(reason string) string {
	if words, ok := reasons[reason]; ok {
		return words
	}
	return plainText(reason)
}

// IsGated reports whether the original is given only to those who accept its terms, by the Hub or
// by its own card.
func (in CardInput) IsGated() bool {
	gated := in.Gated
	for key := range in.Source.all() {
		gated = gated || strings.HasPrefix(key, gatedPrefix)
	}
	return gated
}

// Coded sums up the units that are stored as DF11.
func (in CardInput) Coded() (sum struct{ NUnits, NWeights int64 }) {
	for _, u := range in.Manifest.Units {
		if u.Status == DF11 {
			sum.NUnits, sum.NWeights = sum.NUnits+1, sum.NWeights+u.NWeights
		}
	}
	return sum
}

// KeptBF16 are the units that DF11 cannot hold.
func (in CardInput) KeptBF16() []Unit {
	return filter(in.Manifest.Units, func(u Unit) bool { return u.Status == BF16 })
}

// TiesBroken are the units whose code depends on a rule of docs/format.md §5.1.
func (in CardInput) TiesBroken() []Unit {
	return filter(in.Manifest.Units, func(u Unit) bool { return u.TieBroken })
}

func filter[T any](list []T, keep func(T) bool) (kept []T) {
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// NoticeFiles are the license files that were copied.
func (in CardInput) NoticeFiles() []plan.File {
	return filter(in.Plan.Copied, func(f plan.File) bool { return plan.IsNotice(f.Path) })
}

// Size writes a number of bytes in the unit that suits the source's weights, so that both can be
// compared.
func (in CardSizes) Size(nBytes int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GB", 1e9}, {"MB", 1e6}} {
		if float64(in.SourceBytes) >= u.size {
			return fmt.Sprintf("%.2f %s", float64(nBytes)/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.1f kB", float64(nBytes)/1e3)
}

// Percent is the size after conversion; one decimal.
func (in CardSizes) Percent() string {
	if in.SourceBytes <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(in.OutputBytes)/float64(in.SourceBytes))
}

// Usage names the section of the card that shows how to load the model.
func (in CardInput) Usage() string {
	switch {
	case in.Plan.Layout == catalog.ComfyUI:
		return "comfyui"
	case in.Plan.Layout == catalog.Diffusers || in.Plan.Layout == catalog.DiffusersSingle:
		return "diffusers"
	case strings.HasPrefix(in.Plan.Loader.Via, "bfloat16_model"):
		return "class"
	}
	return "auto"
}

// className matches the start of a loader's class.
var className = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

// readers are those with a verdict.
func (in CardInput) readers(v plan.Verdict) []plan.Reader {
	return filter(in.Plan.Readers, func(r plan.Reader) bool { return r.Loads == v })
}

// Loaders are the programs in which models of the class were loaded.
func (in CardInput) Loaders() []plan.Reader { return in.readers(plan.Loads) }

// OtherLoaders are the programs that nobody has tried.
func (in CardInput) OtherLoaders() []plan.Reader { return in.readers(plan.Untested) }

// Untested reports whether no reader is known to load the model.
func (in CardInput) Untested() bool { return len(in.Plan.Readers) > 0 && len(in.Loaders()) == 0 }

// Refused is the reader of the layout if no reader at all loads the model; else nil.
func (in CardInput) Refused() *plan.Reader {
	refused := in.readers(plan.Refuses)
	switch {
	case len(refused) == 0 || len(refused) < len(in.Plan.Readers):
		return nil
	case in.Plan.Layout == catalog.ComfyUI:
		return &refused[len(refused)-1]
	}
	return &refused[0]
}

// Class is the Python class to build; "" if the catalog does not know it.
func (in CardInput) Class() string { return className.FindString(in.Plan.Loader.Class) }

// AutoClass is the class of transformers that finds the model's class, where that comes with the
// model or is not known; else "".
func (in CardInput) AutoClass() string {
	if c := cmp.Or(in.Class(), "AutoModel"); strings.HasPrefix(c, "Auto") && in.Usage() == "class" {
		return c
	}
	return ""
}

// Processor is the class of transformers that prepares the model's inputs; "" if the model has no
// files for one.
func (in CardInput) Processor() string {
	for _, p := range [][2]string{{"processor_config.json", "AutoProcessor"},
		{"preprocessor_config.json", "AutoProcessor"}, {"tokenizer_config.json", "AutoTokenizer"}} {
		if slices.ContainsFunc(in.Plan.Copied, func(f plan.File) bool { return f.Path == p[0] }) {
			return p[1]
		}
	}
	return ""
}

// Trust is the argument that lets transformers run code which comes with the model.
func (in CardInput) Trust() string {
	if in.Plan.Loader.RemoteCode {
		return ", trust_remote_code=True"
	}
	return ""
}

// OnlyTransformers4 reports whether the model does not load with transformers 5, or nobody has
// tried.
func (in CardInput) OnlyTransformers4() bool {
	return strings.Contains(in.Plan.Loader.Transformers, "<")
}

// Install is the pip line. dfloat11 0.5.0 imports pkg_resources, which setuptools 82 dropped.
// PyTorch 2.11 is for CUDA 13, dfloat11[cuda12] brings CuPy for CUDA 12.
func (in CardInput) Install() string {
	line := `pip install "torch<2.11" "setuptools<81" "transformers` + in.Plan.Loader.Transformers +
		`" "dfloat11[cuda12]"`
	if in.Usage() == "diffusers" {
		// Wan and others clean prompts with ftfy, which diffusers does not install
		line += " diffusers ftfy"
	}
	return line
}

// Origin says in words where the list of compressed modules comes from.
func (in CardInput) Origin() string {
	kind, detail, _ := strings.Cut(in.Plan.Provenance, ":")
	switch {
	case in.Plan.Derived():
		return "was derived from the tensor names and shapes of this model; no release by the authors of DFloat11 confirms it"
	case kind == "published":
		return "is the one of the published " + modelLink(detail)
	case kind == "given":
		return "was given by hand"
	case kind == "derived":
		return "was derived from the source code of the model class"
	}
	return "comes from " + code(in.Plan.Provenance)
}

// GPUs are the rows of the table of GPUs.
func (in CardInput) GPUs() []Fit {
	return Fits(in.SourceBytes, in.OutputBytes, in.LargestModule())
}

// LargestModule is the size in BF16 of the largest module that is stored as DF11.
func (in CardInput) LargestModule() int64 {
	kept := in.KeptBF16()
	return in.Plan.LargestModule(func(i int) bool {
		return slices.ContainsFunc(kept,
			func(k Unit) bool { return k.Path == in.Plan.Units[i].Path })
	})
}
