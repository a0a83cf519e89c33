package rules

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// Decode reads a market. Its errors are Invalid and begin with name:line:column.
func Decode(name string, text []byte) (*Market, error) {
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if file.Documents != 1 {
		return nil, messages.Errorf(messages.Invalid, "%s:1:1: a market is described by one document, there are %d", name, file.Documents)
	}
	d := &document{file}
	m := &Market{Name: "main", Bids: bids.Default()}
	mechanism, err := d.mechanism()
	if err != nil {
		return nil, err
	}
	switch mechanism { // the defaults of its bids that differ from the model's
	case Proportional:
		m.Bids.Budget = 1 // which is what a completed job pays
	case Reservation:
		m.Bids.Deadline.Slack = "none" // by the end of the period that is sold
	}
	if err := d.durations(); err != nil {
		return nil, err
	}
	if err := yamlfile.Strict(text, m); err != nil && !errors.Is(err, io.EOF) {
		return nil, d.syntax(err)
	}
	if err := cmp.Or(d.belong(mechanism), d.once(mechanism), d.counts()); err != nil {
		return nil, err
	}
	m.defaults()
	if err := m.check(); err != nil {
		return nil, d.locate(err)
	}
	return m, nil
}

// document is a parsed file.
type document struct{ *yamlfile.File }

// syntax says where YAML found something wrong.
func (d *document) syntax(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return d.Misread(err)
	}
	text := at.GetMessage()
	var kind *yaml.TypeError
	var large *yaml.OverflowError
	switch key, unknown := strings.CutPrefix(text, "unknown field "); {
	case unknown:
		text = strings.Trim(key, `"`) + ": there is no such field" + d.near()
	case errors.As(err, &kind):
		text = fmt.Sprintf("must be %s, is %.64q", kinds[kind.DstType.Kind()], at.GetToken().Value)
	case errors.As(err, &large):
		text = fmt.Sprintf("%.64s is beyond what a number here can be", large.SrcNum)
	}
	return d.Misread(&yaml.SyntaxError{Message: text, Token: at.GetToken()})
}

// kinds are what can stand in a market, in words.
var kinds = map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Uint64: "a whole number",
	reflect.Float64: "a number", reflect.String: "text", reflect.Struct: "a mapping"}

// near suggests what a misspelt parameter may have meant.
func (d *document) near() string {
	mechanism, err := d.mechanism()
	if err != nil {
		return ""
	}
	known := append(slices.Clone(common), parameters[mechanism]...)
	return "; at the top level there can be " + strings.Join(known, ", ")
}

// mechanism reads the mechanism's name before everything else, as it says what
// else there can be.
func (d *document) mechanism() (string, error) {
	for key, pair := range d.pairs() {
		if key != "mechanism" {
			continue
		}
		name := ""
		if err := yamlfile.Value(pair.Value, &name); err != nil || parameters[name] == nil {
			return "", d.Errorf(pair.Value, "mechanism: must be one of %s, is %.64q", strings.Join(Mechanisms(), ", "), pair.Value.String())
		}
		return name, nil
	}
	return "", messages.Errorf(messages.Invalid, "%s:1:1: mechanism: is missing; it can be %s", d.Name, strings.Join(Mechanisms(), ", "))
}

// pairs are the keys of the top level with their values.
func (d *document) pairs() iter.Seq2[string, *ast.MappingValueNode] {
	return func(yield func(string, *ast.MappingValueNode) bool) {
		for _, pair := range yamlfile.Pairs(d.Root) {
			if !yield(pair.Key.GetToken().Value, pair) {
				return
			}
		}
	}
}

// belong refuses parameters of other mechanisms.
func (d *document) belong(mechanism string) error {
	for key, pair := range d.pairs() {
		if !slices.Contains(common, key) && !slices.Contains(parameters[mechanism], key) {
			return d.Errorf(pair.Key, "%s: mechanism %s has no such parameter; it has %s", key, mechanism, strings.Join(parameters[mechanism], ", "))
		}
	}
	return nil
}

// says tells whether a key stands at the top level.
func (d *document) says(key string) bool {
	for k := range d.pairs() {
		if k == key {
			return true
		}
	}
	return false
}

// locate puts file, line and column before an error that begins with a path.
func (d *document) locate(err error) error {
	text := messages.AsError("", err).Message
	path, rest, _ := strings.Cut(text, ":")
	for key := range d.pairs() { // it was said by another name
		if other := synonyms[key]; other != "" && !d.says(other) && (path == other || path == other+"."+key) {
			path, text = key, key+":"+rest
		}
	}
	n, _ := d.Find(path)
	return d.Errorf(n, "%s", text)
}
