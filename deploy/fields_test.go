package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestFieldsAreAddedAtTheEnd checks that stored or sent structs get new fields only at their ends. In msgpack a struct
// is an array of its fields, so a field in the middle would make older data unreadable. testdata/fields.txt lists the
// fields. With UPDATE_GOLDEN=1, the test adds new fields to this file. A field after the last release needs a tag with
// a higher level, as in `since:"2"`.
func TestFieldsAreAddedAtTheEnd(t *testing.T) {
	const golden = "testdata/fields.txt"
	now := map[string][]string{}
	for _, directory := range []string{"messages", "auctioneer/book", "bank/ledger", "nodeagent/runner/executor"} {
		maps.Copy(now, fieldsOf(t, directory))
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	was := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		was[words[0]] = words[1:]
	}
	lines, wrong, last := []string{}, false, messages.Releases[len(messages.Releases)-1]
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old := was[name]; !startsWith(now[name], old) {
			t.Errorf("%s had the fields %v, and has %v: put new fields at the end. If no release has stored or sent the struct, remove its line from %s", name, old, now[name], golden)
			wrong = true
		} else if directory, _, _ := strings.Cut(name, "."); len(old) > 0 && directory != "bank/ledger" {
			for _, field := range now[name][len(old):] {
				_, tag, _ := strings.Cut(field, ":")
				if level, _ := strconv.Atoi(tag); level <= last.Level || level > messages.Level {
					t.Errorf("%s has the new field %s: give it the tag `since:\"%d\"`, and let messages.Level be %d, because %s does not know it", name, field, last.Level+1, last.Level+1, last.Name)
					wrong = true
				}
			}
		}
		lines = append(lines, name+" "+strings.Join(now[name], " ")+"\n")
	}
	switch {
	case len(now) < 300:
		t.Errorf("only %d structs: the search is broken", len(now))
	case wrong || strings.Join(lines, "") == string(text):
	case os.Getenv("UPDATE_GOLDEN") != "":
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s lacks new structs or fields: run this test with UPDATE_GOLDEN=1", golden)
	}
}

func startsWith(list, beginning []string) bool {
	return len(list) >= len(beginning) && slices.Equal(list[:len(beginning)], beginning)
}

// fieldsOf returns the exported fields of each struct in a directory, in order. The directory messages includes its
// vocabularies.
func fieldsOf(t *testing.T, directory string) map[string][]string {
	t.Helper()
	fields := map[string][]string{}
	root := filepath.Join("..", filepath.FromSlash(directory))
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (directory != "messages" || !slices.Contains(vocabularies, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			of, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := of.Type.(*ast.StructType); ok {
				if names := exported(s); len(names) > 0 {
					fields[directory+"."+of.Name.Name] = names
				}
			}
			return false
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func exported(s *ast.StructType) (names []string) {
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, name.Name+sinceTag(field))
			}
		}
		if len(field.Names) > 0 {
			continue
		}
		switch embedded := field.Type.(type) { // an embedded struct is one element
		case *ast.Ident:
			names = append(names, embedded.Name)
		case *ast.SelectorExpr:
			names = append(names, embedded.Sel.Name)
		}
	}
	return names
}

// sinceTag returns a colon and the level in a field's tag "since", such as ":2". It returns "" if there is no such tag.
func sinceTag(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(f.Tag.Value)
	if level := reflect.StructTag(text).Get("since"); level != "" {
		return ":" + level
	}
	return ""
}
