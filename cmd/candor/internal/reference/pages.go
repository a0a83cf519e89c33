package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

const generated = "<!-- Made by make docs; do not edit. -->\n\n"

// pages returns the pages of the reference, by file name. The argument `source` is the root of the source tree, whose
// comments become the page of the configuration.
func pages(source string) (map[string]string, error) {
	configuration, err := configurationPage(source)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPage()
	return map[string]string{"commands.md": commandsPage(), "errors.md": errorsPage(), "configuration.md": configuration, "metrics.md": metrics}, err
}

func writePages(dir string) error {
	all, err := pages(".")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func commandsPage() string {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() && !c.IsAvailableCommand() && c.Runnable() {
			return
		}
		fmt.Fprintf(&b, "## %s\n\n```\n", c.CommandPath())
		if c.Runnable() {
			fmt.Fprintf(&b, "%s\n\n", c.UseLine())
		}
		text := c.Long
		if text == "" {
			text = c.Short
		}
		fmt.Fprintf(&b, "%s\n", text)
		if c.HasExample() {
			fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
		}
		if flags := c.LocalFlags().FlagUsagesWrapped(100); flags != "" {
			fmt.Fprintf(&b, "\nFlags:\n%s", flags)
		}
		b.WriteString("```\n\n")
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root())
	return b.String()
}

func errorsPage() string {
	var b strings.Builder
	b.WriteString("# Errors and exit codes\n\n" + generated)
	b.WriteString("An error is printed as `candor COMMAND: what is wrong (Kind)`. A reply over NATS has the kind in its headers.\n\n")
	b.WriteString("| kind | exit code | ask again |\n|---|---|---|\n")
	for _, k := range messages.Kinds() {
		again := "no"
		if k.Retriable() {
			again = "yes, with the same key"
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", k, cli.ExitCode(messages.Errorf(k, "…")), again)
	}
	for _, c := range root().Commands() {
		if c.Name() == "exit-codes" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.Long)
		}
	}
	return b.String()
}

// fields has the struct types of some packages, with the comments of their fields.
type fields struct {
	structs map[string]*ast.StructType // by package and name of the type
	out     strings.Builder
}

// configured has the directories of the packages whose structs appear in a configuration, by package name.
var configured = map[string]string{"embedded": "deploy/embedded", "messages": "messages", "job": "messages/job", "market": "messages/market", "quota": "auctioneer/quota", "notify": "auctioneer/notify", "signon": "deploy/console/signon"}

// Some comments of the configuration use Go names. goWords maps these names to the words that readers of the reference
// need.
var goWords = map[string]string{"DefaultConnections": "128", "Valuation": "`valuation`",
	"Sigmoidal": "sigmoidal", "LinearDecay": "linear-decay", "Hard": "hard", "Recurrent": "recurrent", "Custom": "custom"}

// capitalised matches a word that may be the Go name of a field.
var capitalised = regexp.MustCompile(`[A-Z][A-Za-z]*`)

// meaning rewrites the comment of a field for readers of the configuration. It replaces the Go names of fields by their
// keys. The fields may be from the same struct or from a struct around it. The first word of a sentence always has a
// capital letter, so in a later sentence it counts as a Go name only if it has a second capital letter.
func meaning(comment string, keys []map[string]string) string {
	comment = strings.NewReplacer(". nil:", ". Left out:", "nil:", "left out:", `"":`, "empty:", "|", `\|`).Replace(strings.Join(strings.Fields(comment), " "))
	var out strings.Builder
	end := 0
	for _, at := range capitalised.FindAllStringIndex(comment, -1) {
		word := comment[at[0]:at[1]]
		out.WriteString(comment[end:at[0]])
		end = at[1]
		begins := strings.HasSuffix(comment[:at[0]], ". ") && !strings.ContainsFunc(word[1:], unicode.IsUpper)
		replacement, found := goWords[word]
		for i := len(keys) - 1; i >= 0 && !found && !begins; i-- {
			if replacement, found = keys[i][word]; found {
				replacement = "`" + replacement + "`"
			}
		}
		if !found {
			replacement = word
		}
		out.WriteString(replacement)
	}
	return out.String() + comment[end:]
}

func configurationPage(source string) (string, error) {
	f := &fields{structs: map[string]*ast.StructType{}}
	for name, dir := range configured {
		if err := f.read(name, filepath.Join(source, dir)); err != nil {
			return "", err
		}
	}
	f.out.WriteString("# Configuration\n\n" + generated)
	f.out.WriteString("The fields of a site's configuration, for `candor up --config site.yaml`. A dot stands for a field within\nanother, `[]` for each of a list. `candor config show` prints the values of fields that are left out.\n\n")
	f.out.WriteString("| field | meaning |\n|---|---|\n")
	f.add("embedded", "Config", "", nil)
	return f.out.String(), nil
}

func (f *fields) read(name, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				if s, ok := t.Type.(*ast.StructType); ok {
					f.structs[name+"."+t.Name.Name] = s
				}
			}
			return true
		})
	}
	return nil
}

// add writes the fields of a struct, and of the structs in it. A struct may itself be inside other structs, its outer
// structs. For each outer struct, the list `around` has a map from the names of its Go fields to their keys in the
// file.
func (f *fields) add(pkg, name, prefix string, around []map[string]string) {
	s := f.structs[pkg+"."+name]
	if s == nil || len(around) > 5 {
		return
	}
	keys := append(slices.Clone(around), map[string]string{})
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			if tag := keyOf(field); tag != "" && tag != "-" {
				keys[len(around)][name.Name] = tag
			}
		}
	}
	for _, field := range s.Fields.List {
		inPkg, inName, list := typeOf(pkg, field.Type)
		if len(field.Names) == 0 {
			f.add(inPkg, inName, prefix, keys)
			continue
		}
		tag := keyOf(field)
		if tag == "" || tag == "-" {
			continue
		}
		comment := field.Doc.Text()
		if comment == "" {
			comment = field.Comment.Text()
		}
		fmt.Fprintf(&f.out, "| `%s%s` | %s |\n", prefix, tag, meaning(comment, keys))
		f.add(inPkg, inName, prefix+tag+list+".", keys)
	}
}

// keyOf returns the key of a field in a configuration. "" or "-" means that the field is in no configuration.
func keyOf(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(field.Tag.Value)
	tag, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
	return tag
}

// typeOf returns the package and name of a struct. The type is this struct, a pointer to it, or a list of it. For a
// list, the result `list` is "[]".
func typeOf(pkg string, t ast.Expr) (inPkg, name, list string) {
	switch t := t.(type) {
	case *ast.Ident:
		return pkg, t.Name, ""
	case *ast.SelectorExpr:
		if from, ok := t.X.(*ast.Ident); ok {
			return strings.TrimSuffix(from.Name, "msg"), t.Sel.Name, "" // packages in messages may be imported under a name with the ending msg
		}
	case *ast.StarExpr:
		return typeOf(pkg, t.X)
	case *ast.ArrayType:
		inPkg, name, _ = typeOf(pkg, t.Elt)
		return inPkg, name, "[]"
	case *ast.MapType:
		inPkg, name, _ = typeOf(pkg, t.Value)
		return inPkg, name, ".NAME"
	}
	return "", "", ""
}
