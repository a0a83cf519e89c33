// Package yamlfile reads files that people write in YAML or JSON (which is valid YAML), and tells the place of each
// value. A file has one document. The caller decides what the document may contain, and writes the errors.
//
// The YAML library panics on some documents, such as "stages: ! &a {b: {c}}", and takes memory without bound for
// others, such as 20,000 opening brackets. All calls of the library for untrusted text are in this package, which
// returns an error in these cases.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages"
)

// File is a parsed file.
type File struct {
	Name      string
	Root      ast.Node // nil means that the file is empty
	Documents int      // number of documents in the file; Root is the last one
	anchors   map[string]ast.Node
}

// Parse reads a file. The error is Invalid and begins with name:line:column.
func Parse(name string, text []byte) (*File, error) {
	f := &File{Name: name, anchors: map[string]ast.Node{}}
	file, err := parse(text)
	if err != nil {
		return nil, f.Misread(err)
	}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType && doc.Body.Type() != ast.CommentType {
			f.Documents++
			f.Root = doc.Body
		}
	}
	return f, nil
}

// Errorf returns an error of kind Invalid about a node of the document. The text of the error begins with
// name:line:column.
func (f *File) Errorf(n ast.Node, format string, args ...any) error {
	line, column := Position(n)
	return f.at(line, column, fmt.Sprintf(format, args...))
}

func (f *File) at(line, column int, text string) error {
	return messages.Errorf(messages.Invalid, "%s:%d:%d: %s", f.Name, line, column, text)
}

// Misread turns an error of the YAML library into an error of the kind Invalid. The text of this error begins with the
// file, the line and the column of the fault.
func (f *File) Misread(err error) error {
	at, ok := errors.AsType[yaml.Error](err)
	if !ok || at.GetToken() == nil || at.GetToken().Position == nil {
		return f.at(1, 1, err.Error())
	}
	p := at.GetToken().Position
	return f.at(p.Line, p.Column, at.GetMessage())
}

// Find returns the node at a path such as "markets[0].name". If the file does not have all of the path, it returns the
// nearest node above, and false.
func (f *File) Find(path string) (ast.Node, bool) {
	n := f.Root
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(f.Plain(n), step)
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, n != nil
}

// Only returns a file with a single key of this file, and with all anchors. If this file does not have the key, the
// Root of the result is nil.
func (f *File) Only(key string) *File {
	only := &File{Name: f.Name, Documents: f.Documents, anchors: f.anchors}
	for _, pair := range Pairs(f.Root) {
		if pair.Key.GetToken().Value == key {
			only.Root = pair
			ast.Walk(anchoring{f}, f.Root)
		}
	}
	return only
}

// anchoring visits nodes, and records their anchors in the file. An anchor is a name for a node, for use elsewhere in
// the file.
type anchoring struct{ *File }

// Visit implements [ast.Visitor].
func (a anchoring) Visit(n ast.Node) ast.Visitor {
	a.Plain(n)
	return a
}

func child(n ast.Node, step string) ast.Node {
	if sequence, ok := n.(*ast.SequenceNode); ok {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(sequence.Values) {
			return sequence.Values[i]
		}
		return nil
	}
	for _, pair := range Pairs(n) {
		if pair.Key.GetToken().Value == step {
			return pair.Value
		}
	}
	return nil
}

// Plain returns the node without its anchors and tags. An alias is replaced by the node of its anchor. If no anchor of
// this name stands before the alias, Plain returns the alias.
func (f *File) Plain(n ast.Node) ast.Node {
	for {
		switch v := n.(type) {
		case *ast.AnchorNode:
			f.anchors[v.Name.GetToken().Value] = v.Value
			n = v.Value
		case *ast.AliasNode:
			if target, ok := f.anchors[v.Value.GetToken().Value]; ok {
				return target
			}
			return v
		case *ast.TagNode:
			n = v.Value
		default:
			return n
		}
	}
}

// Position returns the line and the column where a node begins, both counted from 1. For a mapping in block style, this
// is the place of its first key.
func Position(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case nil:
		return 1, 1
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

// Pairs returns the keys of a mapping with their values; none for other nodes.
func Pairs(n ast.Node) []*ast.MappingValueNode {
	switch v := n.(type) {
	case *ast.MappingNode:
		return v.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}
	}
	return nil
}

// Strict decodes the first document of a text. An unknown key is an error.
func Strict(text []byte, v any) error { return NewDecoder(text).Decode(v) }

// Decoder decodes the documents of a text one after another.
type Decoder struct {
	documents *yaml.Decoder
	unread    error // why the text must not be decoded; nil means that it may be decoded
}

// NewDecoder makes a decoder that refuses unknown keys.
func NewDecoder(text []byte) *Decoder {
	_, err := parse(text)
	return &Decoder{documents: yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()), unread: err}
}

// Decode decodes the next document. After the last one it returns io.EOF.
func (d *Decoder) Decode(v any) error {
	if d.unread != nil {
		return d.unread
	}
	return guard(func() error { return d.documents.Decode(v) })
}

// Value decodes a node.
func Value(n ast.Node, v any) error {
	return guard(func() error { return yaml.NodeToValue(n, v) })
}

// ErrShape is the error for a document on which the YAML library panics.
var ErrShape = errors.New("cannot be read: somewhere there is a list instead of a mapping, or a mapping instead of a list")

func guard(read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrShape
		}
	}()
	return read()
}
