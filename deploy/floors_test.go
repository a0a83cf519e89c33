package deploy_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of some packages must have an order in which each file uses only earlier files. So files must not use one
// another in a circle.
func TestFilesStandOnFloors(t *testing.T) {
	for _, directory := range []string{"../auctioneer", "../auctioneer/book", "../auctioneer/desk"} {
		uses := fileUses(t, directory)
		if len(uses) < 10 {
			t.Errorf("%s: only %d files use others; the search is broken", directory, len(uses))
		}
		for _, circle := range circles(uses) {
			t.Errorf("%s: these files use one another: %s", directory, strings.Join(circle, "; "))
		}
	}
}

// The files a, b and c use one another in a circle. The search must find this circle. It must not report the file e,
// which uses a file of the circle but is not in it.
func TestCirclesAreFound(t *testing.T) {
	uses := map[string]map[string]string{"a": {"b": "B"}, "b": {"c": "C", "d": "D"}, "c": {"a": "A"}, "e": {"a": "A"}}
	if got := circles(uses); len(got) != 1 || !slices.Equal(got[0], []string{"a uses b (B)", "b uses c (C)", "c uses a (A)"}) {
		t.Errorf("found %q", got)
	}
}

// fileUses returns, for each file of a package, the other files that it uses. For each of these other files, it gives
// one name that is used.
func fileUses(t *testing.T, directory string) map[string]map[string]string {
	t.Helper()
	files, set := []*ast.File{}, token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", exports(t, directory))}
	if _, err := config.Check(directory, set, files, &info); err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]string{}
	for name, object := range info.Uses {
		if object.Pkg() == nil || object.Pkg().Path() != directory || isLocal(object) {
			continue
		}
		from, to := filepath.Base(set.Position(name.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		uses[from][to] = max(uses[from][to], object.Name())
	}
	return uses
}

// isLocal reports whether a name is local to a function, so that no other file can use it.
func isLocal(object types.Object) bool {
	switch o := object.(type) {
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	case *types.Func:
		return false
	}
	return object.Parent() != object.Pkg().Scope()
}

func exports(t *testing.T, directory string) importer.Lookup {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", ".")
	command.Dir = directory
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		at[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(at[path]) }
}

// circles finds the circles of files that use one another. It returns each circle as a list of texts such as "a uses b
// (B)".
func circles(uses map[string]map[string]string) (all [][]string) {
	done := map[string]bool{}
	var path []string
	var visit func(string)
	visit = func(file string) {
		if at := slices.Index(path, file); at >= 0 {
			var circle []string
			for k := at; k < len(path); k++ {
				next := append(path, file)[k+1]
				circle = append(circle, path[k]+" uses "+next+" ("+uses[path[k]][next]+")")
			}
			all = append(all, circle)
			return
		}
		if done[file] {
			return
		}
		path = append(path, file)
		for _, next := range slices.Sorted(maps.Keys(uses[file])) {
			visit(next)
		}
		path, done[file] = path[:len(path)-1], true
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		visit(file)
	}
	return all
}
