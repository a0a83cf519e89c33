package serve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// document is a configuration file, and what is wrong with it.
type document struct {
	*yamlfile.File
	found []finding
}

// finding is one thing that is wrong, and where. Line and column count from 1.
type finding struct {
	line, column int
	text         string
}

// parse reads YAML. The error says where the text is no YAML.
func parse(name string, text []byte) (*document, error) {
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if file.Documents > 1 {
		return nil, messages.Errorf(messages.Invalid, "%s: has %d documents; put the configuration in one", name, file.Documents)
	}
	return &document{File: file}, nil
}

// err is everything found, one line each in the order of the file, or nil.
func (d *document) err() error {
	if len(d.found) == 0 {
		return nil
	}
	slices.SortStableFunc(d.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	lines := make([]string, len(d.found))
	for i, f := range d.found {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", d.Name, f.line, f.column, f.text)
	}
	return messages.Errorf(messages.Invalid, "%s", strings.Join(lines, "\n"))
}

func (d *document) addf(n ast.Node, format string, args ...any) {
	line, column := yamlfile.Position(n)
	d.found = append(d.found, finding{line, column, fmt.Sprintf(format, args...)})
}

// decode puts what the file says into v, a pointer to a struct, and leaves what
// it does not mention. All that cannot be decoded is noted, not just the first.
func (d *document) decode(v any) {
	if d.Root != nil {
		d.value(d.Root, reflect.ValueOf(v).Elem(), "")
	}
}

// value decodes a node into v. Path is where it is, as in "markets[0].name".
func (d *document) value(n ast.Node, v reflect.Value, path string) {
	n = d.Plain(n)
	if n == nil || n.Type() == ast.NullType {
		return // as if it were not there
	}
	if alias, ok := n.(*ast.AliasNode); ok {
		d.addf(alias, "alias *%s: no anchor of that name stands before it", alias.Value.GetToken().Value)
		return
	}
	if custom(v) {
		d.leaf(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.value(n, fresh.Elem(), path)
		v.Set(fresh)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.leaf(n, v, path)
	}
}

// custom says whether a type reads itself.
func custom(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case yaml.BytesUnmarshaler, yaml.InterfaceUnmarshaler:
		return true
	}
	return false
}

func (d *document) structure(n ast.Node, v reflect.Value, path string) {
	if n.Type() != ast.MappingType && n.Type() != ast.MappingValueType {
		d.addf(n, "%s: must be a mapping, of %s", cmp.Or(path, "the file"), strings.Join(keys(v.Type()), ", "))
		return
	}
	for _, pair := range yamlfile.Pairs(n) {
		key := pair.Key.GetToken().Value
		if key == "<<" {
			d.value(pair.Value, v, path)
			continue
		}
		d.field(pair, key, v, path)
	}
}

func (d *document) field(pair *ast.MappingValueNode, key string, v reflect.Value, path string) {
	known := keys(v.Type())
	if i := slices.Index(known, key); i >= 0 {
		d.value(pair.Value, v.Field(i), join(path, key))
		return
	}
	hint := "it can have " + strings.Join(known, ", ")
	if near := spelling.Nearest(key, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.addf(pair.Key, "%s: there is no such key; %s", join(path, key), hint)
}

func (d *document) list(n ast.Node, v reflect.Value, path string) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.addf(n, "%s: must be a list", path)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, element := range sequence.Values {
		d.value(element, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *document) leaf(n ast.Node, v reflect.Value, path string) {
	fresh := reflect.New(v.Type())
	err := yamlfile.Value(n, fresh.Interface())
	if err == nil && whole(v) {
		err = refuseFractions(n)
	}
	if err != nil {
		d.addf(n, "%s: %s", path, expectation(v, err))
		return
	}
	v.Set(fresh.Elem())
}

// whole says whether a value is of whole numbers.
func whole(v reflect.Value) bool {
	_, slots := v.Interface().(embedded.Slots)
	return slots || !custom(v) && (v.CanInt() || v.CanUint())
}

// refuseFractions refuses numbers with a fraction, which the YAML reader would cut off
// silently.
func refuseFractions(n ast.Node) error {
	for _, pair := range yamlfile.Pairs(n) {
		if err := refuseFractions(pair.Value); err != nil {
			return err
		}
	}
	if f, ok := n.(*ast.FloatNode); ok && f.Value != math.Trunc(f.Value) {
		return errFraction
	}
	return nil
}

var errFraction = errors.New("is a fraction")

// expectation says what a value that could not be read must be.
func expectation(v reflect.Value, err error) string {
	switch v.Interface().(type) {
	case embedded.Slots:
		return "must map classes to numbers of slots, like {map: 2, reduce: 1}"
	case messages.Credits, messages.Duration:
		return err.Error()
	}
	switch {
	case v.CanInt(), v.CanUint():
		return "must be a whole number"
	case v.CanFloat():
		return "must be a number"
	case v.Kind() == reflect.Bool:
		return "must be true or false"
	}
	return "must be a piece of text"
}

// keys are the names of a struct's fields in a file.
func keys(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// note adds the problems of a configuration at their places in the file.
func (d *document) note(problems embedded.Problems) {
	for _, p := range problems {
		n, _ := d.Find(p.Path)
		d.addf(n, "%s", p.Error())
	}
}
