package df11convert

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
)

// judges says which code may look at names in a way of its own, and why. Only internal/names judges
// paths of repos, repo IDs, commits, and SHA-256 sums.
var judges = map[string]string{
	"internal/human/list.go":      "what a shell needs no quotes for",
	"internal/disk/folder.go":     "Lstat ends only for clean paths; what may be there, the disk knows",
	"internal/model/copies.go":    "paths of this machine, to which links lead",
	"hub/internal/wire/errors.go": "what a terminal may show",
}

// asks are the functions that a second judge of paths or hashes would ask.
var asks = []string{"fs.ValidPath", "filepath.IsLocal", "unicode.IsControl", "hex.DecodeString"}

// TestNamesAreJudgedOnce finds regular expressions that match repo IDs, commits, SHA-256 sums, or
// names of Windows, and functions that judge paths, outside of internal/names.
func TestNamesAreJudgedOnce(t *testing.T) {
	found := map[string]bool{}
	judged := func(file, by string) {
		if found[file] = true; judges[file] == "" {
			t.Errorf("%s: %s judges names, which is for internal/names", file, by)
		}
	}
	eachLiteral(t, func(file string, call *ast.CallExpr, text string) {
		if called(call) == "regexp.MustCompile" && judgesNames(regexp.MustCompile(text)) {
			judged(file, text)
		}
	}, func(file string, call *ast.CallExpr) {
		if slices.Contains(asks, called(call)) {
			judged(file, called(call))
		}
	})
	for file := range judges {
		if !found[file] {
			t.Errorf("%s judges no names any more", file)
		}
	}
}

// judgesNames reports whether an expression accepts a name of some kind, and refuses a name that
// is nearly of that kind.
func judgesNames(re *regexp.Regexp) bool {
	accepts := func(yes, no string) bool { return re.MatchString(yes) && !re.MatchString(no) }
	commit, sum := strings.Repeat("0a", 20), strings.Repeat("0a", 32)
	return accepts(commit, commit[1:]) || accepts(sum, sum[1:]) || accepts(sum, sum[1:]+"g") ||
		strings.Contains(re.String(), "a-f]{40") || strings.Contains(re.String(), "a-f]{64") ||
		accepts("meta-llama/Llama-3.1-8B", "meta-llama/Llama 3.1 8B") ||
		accepts("con", "cone") || accepts("nul.txt", "nula.txt")
}

func TestJudgesNames(t *testing.T) {
	for text, want := range map[string]bool{
		`^[0-9a-f]{40}$`: true, `^([0-9a-f]{40}|[0-9a-f]{64})$`: true, `(?i)[a-f0-9]{64}`: true,
		`/blobs/([0-9a-f]{64})$`: true, `^\w[\w.-]*/\w[\w.-]*$`: true, `(?i)^(con|aux)(\.|$)`: true,
		`^[0-9a-f]{2}/`: false, `\d+`: false, `^[A-Z][A-Za-z0-9]*$`: false, `.*`: false,
	} {
		if judgesNames(regexp.MustCompile(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

// TestFileNamesAreSpelledOnce checks that only internal/names spells the names of files that the
// program writes.
func TestFileNamesAreSpelledOnce(t *testing.T) {
	all := []string{names.Config, names.Card, names.Manifest, names.Chart, names.Weights,
		names.ModelIndex, names.Attributes, names.Ours, names.StateDir}
	eachLiteral(t, func(file string, _ *ast.CallExpr, text string) {
		if slices.Contains(all, text) {
			t.Errorf("%s spells %q: internal/names has a name for it", file, text)
		}
	}, func(string, *ast.CallExpr) {})
}

// eachLiteral visits the texts and the calls of product code. A text that is no argument comes with
// an empty call.
func eachLiteral(t *testing.T, literal func(file string, call *ast.CallExpr, text string),
	visit func(file string, call *ast.CallExpr)) {
	t.Helper()
	support := []string{"internal/names", "internal/hubtest", "internal/testing/golden"}
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if f.test || slices.ContainsFunc(support, func(s string) bool {
				return dir == s || strings.HasPrefix(dir, s+"/")
			}) {
				continue
			}
			calls := map[ast.Expr]*ast.CallExpr{}
			ast.Inspect(parsed(t, f), func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					visit(path.Clean(f.path), n)
					for _, arg := range n.Args {
						calls[arg] = n
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						literal(path.Clean(f.path), calls[n], text)
					}
				}
				return true
			})
		}
	}
}

// called is the function of a package that a call names; "" for any other.
func called(call *ast.CallExpr) string {
	if call == nil {
		return ""
	}
	if fn, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := fn.X.(*ast.Ident); ok {
			return pkg.Name + "." + fn.Sel.Name
		}
	}
	return ""
}
