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
	"github.com/goccy/go-yaml/parser"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// document is a configuration file, and what is wrong with it.
type document struct {
	name    string
	root    ast.Node // nil: the file is empty
	anchors map[string]ast.Node
	found   []finding
}

// finding is one thing that is wrong, and where. Line and column count from 1.
type finding struct {
	line, column int
	text         string
}

// parse reads YAML. The error says where it is not.
func parse(name string, text []byte) (*document, error) {
	d := &document{name: name, anchors: map[string]ast.Node{}}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var at yaml.Error
		if !errors.As(err, &at) || at.GetToken() == nil {
			return nil, messages.Errorf(messages.Invalid, "%s: %v", name, err)
		}
		p := at.GetToken().Position
		d.found = append(d.found, finding{p.Line, p.Column, at.GetMessage()})
		return nil, d.err()
	}
	bodies := 0
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType && doc.Body.Type() != ast.CommentType {
			bodies++
			d.root = doc.Body
		}
	}
	if bodies > 1 {
		return nil, messages.Errorf(messages.Invalid, "%s: has %d documents; put the configuration in one", name, bodies)
	}
	return d, nil
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
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", d.name, f.line, f.column, f.text)
	}
	return messages.Errorf(messages.Invalid, "%s", strings.Join(lines, "\n"))
}

func (d *document) addf(n ast.Node, format string, args ...any) {
	line, column := position(n)
	d.found = append(d.found, finding{line, column, fmt.Sprintf(format, args...)})
}

// position is where a value begins; that of a mapping is its first key.
func position(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			n = v.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = v.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 1, 1
}

// decode puts what the file says into v, a pointer to a struct, and leaves what
// it does not mention. All that cannot be decoded is noted, not just the first.
func (d *document) decode(v any) {
	if d.root != nil {
		d.value(d.root, reflect.ValueOf(v).Elem(), "")
	}
}

// value decodes a node into v. Path is where it is, as in "markets[0].name".
func (d *document) value(n ast.Node, v reflect.Value, path string) {
	n = d.plain(n)
	if n == nil || n.Type() == ast.NullType {
		return // as if it were not there
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

// plain looks through anchors, aliases and tags.
func (d *document) plain(n ast.Node) ast.Node {
	for {
		switch v := n.(type) {
		case *ast.AnchorNode:
			d.anchors[v.Name.GetToken().Value] = v.Value
			n = v.Value
		case *ast.AliasNode:
			target, ok := d.anchors[v.Value.GetToken().Value]
			if !ok {
				d.addf(v, "alias *%s: no anchor of that name stands before it", v.Value.GetToken().Value)
				return nil
			}
			return target
		case *ast.TagNode:
			n = v.Value
		default:
			return n
		}
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
	pairs, ok := pairsOf(n)
	if !ok {
		d.addf(n, "%s: must be a mapping, of %s", orFile(path), strings.Join(keys(v.Type()), ", "))
		return
	}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		if key == "<<" {
			d.value(pair.Value, v, path)
			continue
		}
		d.field(pair, key, v, path)
	}
}

func (d *document) field(pair *ast.MappingValueNode, key string, v reflect.Value, path string) {
	if i, ok := fieldIndex(v.Type(), key); ok {
		d.value(pair.Value, v.Field(i), join(path, key))
		return
	}
	known := keys(v.Type())
	hint := "it can have " + strings.Join(known, ", ")
	if near := embedded.Nearest(key, known); near != "" {
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
	err := yaml.NodeToValue(n, fresh.Interface())
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

// refuseFractions finds what the reader would cut off in silence.
func refuseFractions(n ast.Node) error {
	pairs, _ := pairsOf(n)
	for _, pair := range pairs {
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
	}
	switch v.Kind() {
	case reflect.Float64:
		return "must be a number"
	case reflect.Bool:
		return "must be true or false"
	}
	return "must be a piece of text"
}

func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch v := n.(type) {
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	return nil, false
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

func fieldIndex(t reflect.Type, key string) (int, bool) {
	for i, name := range keys(t) {
		if name == key {
			return i, true
		}
	}
	return 0, false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
