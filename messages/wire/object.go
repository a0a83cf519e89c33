package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Some types, such as Weights, Env and Licenses, are sorted lists, so that equal lists have equal bytes. In JSON and
// YAML they are objects, in which each name is unique.

// Object describes how a list of elements E is written as an object with values V.
type Object[E, V any] struct {
	Pair  func(E) (name string, value V)
	Make  func(name string, value V) E
	What  string // word for an element in error messages
	Wrong string // error text for a value of the wrong kind; the text has a place for the element's name
}

func (f *Object[E, V]) compare(a, b E) int {
	x, _ := f.Pair(a)
	y, _ := f.Pair(b)
	return strings.Compare(x, y)
}

// Ordered returns an error if a list is not sorted or has a name twice.
func (f *Object[E, V]) Ordered(list []E) error {
	for i := 1; i < len(list); i++ {
		name, _ := f.Pair(list[i])
		before, _ := f.Pair(list[i-1])
		switch {
		case before == name:
			return messages.Errorf(messages.Invalid, "%s %q: is given twice", f.What, messages.Clipped(name))
		case before > name:
			return messages.Errorf(messages.Invalid, "%s %q: comes after %q; sort them by name", f.What, messages.Clipped(name), messages.Clipped(before))
		}
	}
	return nil
}

// WriteJSON writes an object.
func (f *Object[E, V]) WriteJSON(list []E) ([]byte, error) { return encodeJSON(f.Mapping(list)) }

// ReadJSON reads a list from a JSON object, in which each name is the name of an element. If the JSON value is null,
// the list is nil.
func (f *Object[E, V]) ReadJSON(data []byte) (list []E, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	if err != nil || first == nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, messages.Errorf(messages.Invalid, "is %s, must be an object like {\"name\": value}", jsonSort(first))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value V
		if err := d.Decode(&value); err != nil {
			return nil, messages.Errorf(messages.Invalid, f.Wrong, messages.Clipped(name.(string)))
		}
		list = append(list, f.Make(name.(string), value))
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	slices.SortFunc(list, f.compare)
	return list, f.Ordered(list)
}

// Mapping returns the object as a map.
func (f *Object[E, V]) Mapping(list []E) map[string]V {
	m := make(map[string]V, len(list))
	for _, e := range list {
		name, value := f.Pair(e)
		m[name] = value
	}
	return m
}

// ReadYAML reads a mapping, and returns a list with one element for each name.
func (f *Object[E, V]) ReadYAML(decode func(any) error) (list []E, err error) {
	var m map[string]V
	err = decode(&m)
	for name, value := range m {
		list = append(list, f.Make(name, value))
	}
	slices.SortFunc(list, f.compare)
	return list, err
}
