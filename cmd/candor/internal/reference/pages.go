package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

const generated = "<!-- Made by make docs; do not edit. -->\n\n"

// pages are those of the reference, by the names of their files. source is the root of the
// tree, of which the comments of configuration fields are read.
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

// commandsPage has each command with its help and its own flags.
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

// errorsPage has the kinds of errors, with the exit code of each.
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

// fields reads the fields of structs, with their comments, of some packages of the tree.
type fields struct {
	structs map[string]*ast.StructType // by package and name
	out     strings.Builder
}

// configured are the packages whose structs a configuration has, by their names.
var configured = map[string]string{"embedded": "deploy/embedded", "messages": "messages", "quota": "auctioneer/quota"}

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
	f.add("embedded", "Config", "", 0)
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

// add writes the fields of a struct, and of those within it.
func (f *fields) add(pkg, name, prefix string, depth int) {
	s := f.structs[pkg+"."+name]
	if s == nil || depth > 5 {
		return
	}
	for _, field := range s.Fields.List {
		inPkg, inName, list := typeOf(pkg, field.Type)
		if len(field.Names) == 0 {
			f.add(inPkg, inName, prefix, depth+1)
			continue
		}
		tag := ""
		if field.Tag != nil {
			text, _ := strconv.Unquote(field.Tag.Value)
			tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
		}
		if tag == "" || tag == "-" {
			continue
		}
		comment := field.Doc.Text()
		if comment == "" {
			comment = field.Comment.Text()
		}
		fmt.Fprintf(&f.out, "| `%s%s` | %s |\n", prefix, tag, strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", `\|`))
		f.add(inPkg, inName, prefix+tag+list+".", depth+1)
	}
}

// typeOf names the struct that a type is, or has.
func typeOf(pkg string, t ast.Expr) (inPkg, name, list string) {
	switch t := t.(type) {
	case *ast.Ident:
		return pkg, t.Name, ""
	case *ast.SelectorExpr:
		if from, ok := t.X.(*ast.Ident); ok {
			return from.Name, t.Sel.Name, ""
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
