package df11convert

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
	"unicode/utf8"
)

// Bounds that keep packages easy to change.
const (
	smallPackage = 300 // lines; the tests of a larger package aren't all elsewhere
	ownTests     = 0.3 // lines of tests per line of such a package
	mostMethods  = 26
	mostFields   = 18
	columns      = 100  // a tab is four
	longLines    = 0.02 // the share of lines that may have more
)

// testedElsewhere are packages with few tests of their own, each with the reason.
var testedElsewhere = map[string]string{
	"internal/testing/ptx": "the tests of verify/kernel run two kernels in it, on units of all kinds",
	"internal/hubtest":     "every test that talks to a Hub tests it, too; hubd is compared with the real one",
}

// TestPackagesHaveTests counts lines.
func TestPackagesHaveTests(t *testing.T) {
	for dir, files := range goFiles(t) {
		lines, tests := 0, 0
		for _, f := range files {
			if n := strings.Count(read(t, f.path), "\n"); f.test {
				tests += n
			} else {
				lines += n
			}
		}
		if lines > smallPackage && float64(tests) < ownTests*float64(lines) && testedElsewhere[dir] == "" {
			t.Errorf("%s has %d lines, and only %d of its own tests", dir, lines, tests)
		}
	}
}

// TestTypesAreSmall counts methods and fields.
func TestTypesAreSmall(t *testing.T) {
	methods, fields := map[string]int{}, map[string]int{}
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if f.test {
				continue
			}
			ast.Inspect(parsed(t, f), func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv != nil {
						of := strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*")
						of, _, _ = strings.Cut(of, "[") // of a generic type
						methods[dir+"."+of]++
					}
					return false
				case *ast.TypeSpec:
					if s, ok := n.Type.(*ast.StructType); ok {
						fields[dir+"."+n.Name.Name] = s.Fields.NumFields()
					}
				}
				return true
			})
		}
	}
	for what, counts := range map[string]map[string]int{"methods": methods, "fields": fields} {
		most := map[string]int{"methods": mostMethods, "fields": mostFields}[what]
		for name, n := range counts {
			if n > most {
				t.Errorf("%s has %d %s, at most %d are allowed", name, n, what, most)
			}
		}
	}
}

// TestLinesAreShort counts columns in all code but tests.
func TestLinesAreShort(t *testing.T) {
	lines, long := 0, []string{}
	for _, files := range goFiles(t) {
		for _, f := range files {
			if f.test {
				continue
			}
			for line := range strings.Lines(read(t, f.path)) {
				lines++
				if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > columns+1 {
					long = append(long, f.path+": "+line)
				}
			}
		}
	}
	if float64(len(long)) > longLines*float64(lines) {
		t.Errorf("%d of %d lines have more than %d columns:\n%s", len(long), lines, columns,
			strings.Join(long, ""))
	}
}
