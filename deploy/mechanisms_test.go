package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
)

// Two texts each have a list of mechanisms. The first list has the mechanisms that promise times. The second list has
// the mechanisms that choose a node for each task. TestPagesListTheMechanismsThatPromise compares these lists with the
// traits of the mechanisms.
func TestPagesListTheMechanismsThatPromise(t *testing.T) {
	for _, of := range []struct {
		file, pattern string
		is            func(*mechanism.Traits) bool
	}{
		{"docs/jobs.md", `Markets that promise times \(([^)]*)\)`, (*mechanism.Traits).FixesTimes},
		{"examples/site.yaml", `Markets that choose a node for each task \(([^)]*)\)`, func(t *mechanism.Traits) bool { return t.Directs }},
	} {
		text, err := os.ReadFile(of.file)
		found := regexp.MustCompile(of.pattern).FindStringSubmatch(strings.ReplaceAll(string(text), "\n#", ""))
		if err != nil || found == nil {
			t.Fatalf("%s has no list: %v", of.file, err)
		}
		listed := regexp.MustCompile(`[a-z-]+`).FindAllString(found[1], -1)
		if slices.Sort(listed); !slices.Equal(listed, registry.Names(of.is)) {
			t.Errorf("%s lists %v, want %v", of.file, listed, registry.Names(of.is))
		}
	}
}

// A package outside of the mechanisms should not name a mechanism. The files in this list name one, each for the given
// reason. The paths are relative to the repository. Files that study mechanisms are not in the list.
var namesMechanisms = map[string]string{
	"messages/market/market.go":                        "has the names as constants, for tests; a new mechanism needs none",
	"cmd/candor/internal/client/clienttest/replies.go": "tests of commands show markets of some mechanism",
	"deploy/embedded/config.go":                        "a site without a configuration has a market of some mechanism",
}

var studies = []string{"cmd/lab", "deploy/simulated", "cmd/candor/internal/simulate", "cmd/candor/internal/audit"}

// Only a mechanism's own directory and one line of the registry may name it. No other file of the program may import it
// or have its name as a string. Common English words, such as deadline, may be in longer texts.
func TestMechanismsAreNamedOnce(t *testing.T) {
	names := registry.Names(nil)
	words := regexp.MustCompile(`\b(` + strings.Join(slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains([]string{"deadline", "contract", "reservation", "proportional"}, n)
	}), "|") + `)\b`)
	constants := []string{"Proportional", "HighestBid", "DeadlineBid", "BatchQueue", "Reservation", "ContractMenu", "FIFO", "FairShare", "Backfill", "Karma"}
	if len(constants) != len(names) || !words.MatchString("a karma market") {
		t.Fatalf("%d constants for %d mechanisms", len(constants), len(names))
	}
	list, err := os.ReadFile("../auctioneer/mechanism/registry/registry.go")
	var described []string // names of the packages in the registry's list
	for _, of := range regexp.MustCompile(`\t(\w+)\.Describe,`).FindAllStringSubmatch(string(list), -1) {
		described = append(described, of[1])
	}
	if len(described) != len(names) {
		t.Fatalf("%d packages in the registry's list, %d mechanisms: %v", len(described), len(names), err)
	}
	found, files := map[string]string{}, 0
	err = filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		file := strings.TrimPrefix(filepath.ToSlash(path), "../")
		within := func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }
		if d != nil && d.IsDir() && (within("auctioneer/mechanism") || slices.ContainsFunc(studies, within) || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				pkg, _ := strconv.Unquote(n.Path.Value)
				if of, is := strings.CutPrefix(pkg, module+"auctioneer/mechanism/"); is {
					if slices.Contains(described, of) {
						found[file] = "imports " + pkg
					}
				}
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "market" || x.Name == "marketmsg") && slices.Contains(constants, n.Sel.Name) {
					found[file] = "has market." + n.Sel.Name
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && (words.MatchString(text) || text == "proportional") {
					found[file] = "has the text " + n.Value
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files: %v", files, err)
	}
	for file, what := range found {
		if namesMechanisms[file] == "" {
			t.Errorf("%s %s", file, what)
		}
	}
	for file := range namesMechanisms {
		if found[file] == "" {
			t.Errorf("%s names no mechanism any more", file)
		}
	}
}
