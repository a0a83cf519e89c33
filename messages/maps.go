package messages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Weights, Env and Licenses are sorted lists, so that equal ones have equal bytes. In JSON and YAML they are objects.
// Reading an object sorts it by name, and refuses a name that occurs twice.

// objectForm describes how a list of elements E is written as an object with values V.
type objectForm[E, V any] struct {
	pair  func(E) (name string, value V)
	make  func(name string, value V) E
	what  string // name for an element in error messages
	wrong string // error text for a value of the wrong kind; it contains the element's name
}

var (
	weightsForm = objectForm[ClassWeight, float64]{
		pair: func(w ClassWeight) (string, float64) { return w.Class, w.Weight },
		make: func(class string, weight float64) ClassWeight { return ClassWeight{class, weight} },
		what: "weight", wrong: "weight of %q: must be a number",
	}
	licensesForm = objectForm[License, int]{
		pair: func(l License) (string, int) { return l.Name, l.Count },
		make: func(name string, count int) License { return License{name, count} },
		what: "licence", wrong: "licence %q: must be a whole number",
	}
	envForm = objectForm[Variable, string]{
		pair: func(v Variable) (string, string) { return v.Name, v.Value },
		make: func(name, value string) Variable { return Variable{name, value} },
		what: "variable", wrong: "variable %q: must be a string",
	}
)

// MarshalJSON writes an object.
func (w Weights) MarshalJSON() ([]byte, error) { return weightsForm.writeJSON(w) }

// UnmarshalJSON reads an object.
func (w *Weights) UnmarshalJSON(b []byte) (err error) {
	*w, err = weightsForm.readJSON(b)
	return err
}

// MarshalYAML writes a mapping.
func (w Weights) MarshalYAML() (any, error) { return weightsForm.mapping(w), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names.
func (w *Weights) UnmarshalYAML(decode func(any) error) (err error) {
	*w, err = weightsForm.readYAML(decode)
	return err
}

// MarshalJSON writes an object.
func (e Env) MarshalJSON() ([]byte, error) { return envForm.writeJSON(e) }

// UnmarshalJSON reads an object.
func (e *Env) UnmarshalJSON(b []byte) (err error) {
	*e, err = envForm.readJSON(b)
	return err
}

// MarshalYAML writes a mapping.
func (e Env) MarshalYAML() (any, error) { return envForm.mapping(e), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names. Numbers and booleans become the text in the
// file.
func (e *Env) UnmarshalYAML(decode func(any) error) (err error) {
	*e, err = envForm.readYAML(decode)
	return err
}

// MarshalJSON writes an object.
func (l Licenses) MarshalJSON() ([]byte, error) { return licensesForm.writeJSON(l) }

// UnmarshalJSON reads an object.
func (l *Licenses) UnmarshalJSON(b []byte) (err error) {
	*l, err = licensesForm.readJSON(b)
	return err
}

// MarshalYAML writes a mapping.
func (l Licenses) MarshalYAML() (any, error) { return licensesForm.mapping(l), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names.
func (l *Licenses) UnmarshalYAML(decode func(any) error) (err error) {
	*l, err = licensesForm.readYAML(decode)
	return err
}

// Overlaid returns the variables of e and over. If both have a name, it takes the value of over. Both must be sorted
// by name, and so is the result.
func (e Env) Overlaid(over Env) Env {
	out := make(Env, 0, len(e)+len(over))
	for len(e) > 0 && len(over) > 0 {
		switch c := strings.Compare(e[0].Name, over[0].Name); {
		case c < 0:
			out, e = append(out, e[0]), e[1:]
		case c > 0:
			out, over = append(out, over[0]), over[1:]
		default:
			e = e[1:]
		}
	}
	return append(append(out, e...), over...)
}

func (f *objectForm[E, V]) compare(a, b E) int {
	x, _ := f.pair(a)
	y, _ := f.pair(b)
	return strings.Compare(x, y)
}

// ordered returns an error if a list is not sorted or has a name twice.
func (f *objectForm[E, V]) ordered(list []E) error {
	for i := 1; i < len(list); i++ {
		name, _ := f.pair(list[i])
		before, _ := f.pair(list[i-1])
		switch {
		case before == name:
			return Errorf(Invalid, "%s %q: is given twice", f.what, clip(name))
		case before > name:
			return Errorf(Invalid, "%s %q: comes after %q; sort them by name", f.what, clip(name), clip(before))
		}
	}
	return nil
}

// writeJSON writes an object.
func (f *objectForm[E, V]) writeJSON(list []E) ([]byte, error) { return encodeJSON(f.mapping(list)) }

// readJSON reads an object, or null.
func (f *objectForm[E, V]) readJSON(data []byte) (list []E, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	if err != nil || first == nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, Errorf(Invalid, "is %s, must be an object like {\"name\": value}", jsonSort(first))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value V
		if err := d.Decode(&value); err != nil {
			return nil, Errorf(Invalid, f.wrong, clip(name.(string)))
		}
		list = append(list, f.make(name.(string), value))
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	slices.SortFunc(list, f.compare)
	return list, f.ordered(list)
}

// mapping returns the object as a map.
func (f *objectForm[E, V]) mapping(list []E) map[string]V {
	m := make(map[string]V, len(list))
	for _, e := range list {
		name, value := f.pair(e)
		m[name] = value
	}
	return m
}

// readYAML reads a mapping.
func (f *objectForm[E, V]) readYAML(decode func(any) error) (list []E, err error) {
	var m map[string]V
	err = decode(&m)
	for name, value := range m {
		list = append(list, f.make(name, value))
	}
	slices.SortFunc(list, f.compare)
	return list, err
}
