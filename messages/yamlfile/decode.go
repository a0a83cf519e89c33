package yamlfile

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

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// Reader decodes a file into a value, and collects all errors that it finds.
type Reader struct {
	*File
	found []finding
}

// finding is one error and its place. Lines and columns count from 1.
type finding struct {
	line, column int
	text         string
}

// Described is a type that decodes itself. Its method returns what a file must contain for a value of this type, and
// whether only whole numbers are allowed.
type Described interface {
	Described() (must string, whole bool)
}

// Parser is a struct that reads the text of some of its fields itself. ParseField reports false for all other fields.
type Parser interface {
	ParseField(key, text string) (parsed bool, err error)
}

// Addf adds an error about a node.
func (r *Reader) Addf(n ast.Node, format string, args ...any) {
	line, column := Position(n)
	r.found = append(r.found, finding{line, column, fmt.Sprintf(format, args...)})
}

// Findings returns the errors found so far as sentences, each beginning with its path.
func (r *Reader) Findings() []string {
	texts := make([]string, len(r.found))
	for i, f := range r.found {
		texts[i] = f.text
	}
	return texts
}

// Err returns all errors, one on each line, in the order of the file. It returns nil if there are none.
func (r *Reader) Err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	lines := make([]string, len(r.found))
	for i, f := range r.found {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", r.Name, f.line, f.column, f.text)
	}
	return messages.Errorf(messages.Invalid, "%s", strings.Join(lines, "\n"))
}

// Decode copies the file into v, a pointer to a struct with json tags, or to a list of such structs. Fields that the
// file does not mention do not change. Decode collects all errors, not only the first.
func (r *Reader) Decode(v any) {
	if r.Root != nil {
		r.value(r.Root, reflect.ValueOf(v).Elem(), "")
	}
}

// value decodes a node into v. The argument `path` is the place of the node, such as "markets[0].name".
func (r *Reader) value(n ast.Node, v reflect.Value, path string) {
	n = r.Plain(n)
	if n == nil || n.Type() == ast.NullType {
		return // null counts as a missing value
	}
	if alias, ok := n.(*ast.AliasNode); ok {
		r.Addf(alias, "alias *%s: no anchor of this name comes before the alias", alias.Value.GetToken().Value)
		return
	}
	if custom(v) {
		r.leaf(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		r.value(n, fresh.Elem(), path)
		v.Set(fresh)
	case reflect.Struct:
		r.structure(n, v, path)
	case reflect.Slice:
		r.list(n, v, path)
	default:
		r.leaf(n, v, path)
	}
}

// custom reports whether a type decodes itself.
func custom(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case yaml.BytesUnmarshaler, yaml.InterfaceUnmarshaler:
		return true
	}
	return false
}

func (r *Reader) structure(n ast.Node, v reflect.Value, path string) {
	if n.Type() != ast.MappingType && n.Type() != ast.MappingValueType {
		r.Addf(n, "%s: must be a mapping with the keys %s", cmp.Or(path, "the file"), strings.Join(keys(v.Type()), ", "))
		return
	}
	for _, pair := range Pairs(n) {
		key := pair.Key.GetToken().Value
		if key == "<<" {
			r.value(pair.Value, v, path)
			continue
		}
		r.field(pair, key, v, path)
	}
}

func (r *Reader) field(pair *ast.MappingValueNode, key string, v reflect.Value, path string) {
	known, at := keys(v.Type()), strings.TrimPrefix(path+"."+key, ".")
	if i := slices.Index(known, key); i >= 0 {
		if !r.parsed(pair.Value, key, v, at) {
			r.value(pair.Value, v.Field(i), at)
		}
		return
	}
	hint := "it can have " + strings.Join(known, ", ")
	if near := spelling.Nearest(key, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.Addf(pair.Key, "%s: there is no such key; %s", at, hint)
}

// parsed reports whether the struct v has read a field from its text with its own method. Only some structs have such a
// method.
func (r *Reader) parsed(n ast.Node, key string, v reflect.Value, path string) bool {
	p, ok := v.Addr().Interface().(Parser)
	n = r.Plain(n)
	scalar, one := n.(ast.ScalarNode)
	if !ok || !one || n.Type() == ast.NullType {
		return false
	}
	parsed, err := p.ParseField(key, fmt.Sprint(scalar.GetValue()))
	if err != nil {
		r.Addf(n, "%s: %v", path, err)
	}
	return parsed
}

func (r *Reader) list(n ast.Node, v reflect.Value, path string) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Addf(n, "%s: must be a list", path)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, element := range sequence.Values {
		r.value(element, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (r *Reader) leaf(n ast.Node, v reflect.Value, path string) {
	fresh := reflect.New(v.Type())
	err := Value(n, fresh.Interface())
	if err == nil && whole(v) {
		err = refuseFractions(n)
	}
	if err != nil {
		r.Addf(n, "%s: %s", path, expectation(v, err))
		return
	}
	v.Set(fresh.Elem())
}

// whole reports whether a value accepts only whole numbers.
func whole(v reflect.Value) bool {
	if d, ok := v.Interface().(Described); ok {
		_, whole := d.Described()
		return whole
	}
	return !custom(v) && (v.CanInt() || v.CanUint())
}

// refuseFractions returns an error for numbers with a fraction, which the YAML library would cut off silently.
func refuseFractions(n ast.Node) error {
	for _, pair := range Pairs(n) {
		if err := refuseFractions(pair.Value); err != nil {
			return err
		}
	}
	if f, ok := n.(*ast.FloatNode); ok && f.Value != math.Trunc(f.Value) {
		return errors.New("is a fraction")
	}
	return nil
}

// expectation returns a phrase that says what the file should have in place of a value that could not be decoded. The
// error err is the cause.
func expectation(v reflect.Value, err error) string {
	if d, ok := v.Interface().(Described); ok {
		must, _ := d.Described()
		return must
	}
	switch {
	case custom(v) && v.CanInt(): // an amount of credits or a time
		return err.Error()
	case v.CanInt(), v.CanUint():
		return "must be a whole number"
	case v.CanFloat():
		return "must be a number"
	case v.Kind() == reflect.Bool:
		return "must be true or false"
	}
	return "must be a piece of text"
}

// keys returns the names of a struct's fields in a configuration file.
func keys(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
