package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// Weights and Env are lists in order, so that equal ones have equal bytes; on
// the outside, in JSON and YAML, they are objects. Reading one sorts it by
// name and refuses a name that is given twice.

// MarshalJSON writes an object.
func (w Weights) MarshalJSON() ([]byte, error) {
	return writeObject(len(w), func(i int) (string, any) { return w[i].Class, w[i].Weight })
}

// UnmarshalJSON reads an object.
func (w *Weights) UnmarshalJSON(b []byte) error {
	var list Weights
	err := readObject(b, func(name string, value *json.Decoder) error {
		cw := ClassWeight{Class: name}
		if err := value.Decode(&cw.Weight); err != nil {
			return Errorf(Invalid, "weight of %q: must be a number", clip(name))
		}
		list = append(list, cw)
		return nil
	})
	*w = list.sorted()
	return errors.Join(err, w.ordered())
}

// MarshalYAML writes a mapping.
func (w Weights) MarshalYAML() (any, error) {
	m := make(map[string]float64, len(w))
	for _, cw := range w {
		m[cw.Class] = cw.Weight
	}
	return m, nil
}

// UnmarshalYAML reads a mapping, in which the YAML reader refuses a name that
// is given twice.
func (w *Weights) UnmarshalYAML(decode func(any) error) error {
	var m map[string]float64
	err := decode(&m)
	var list Weights
	for class, weight := range m {
		list = append(list, ClassWeight{class, weight})
	}
	*w = list.sorted()
	return err
}

func (w Weights) sorted() Weights {
	slices.SortFunc(w, func(a, b ClassWeight) int { return strings.Compare(a.Class, b.Class) })
	return w
}

// ordered refuses a list that is out of order or names a class twice.
func (w Weights) ordered() error {
	return inOrder("weight", len(w), func(i int) string { return w[i].Class })
}

// MarshalJSON writes an object.
func (e Env) MarshalJSON() ([]byte, error) {
	return writeObject(len(e), func(i int) (string, any) { return e[i].Name, e[i].Value })
}

// UnmarshalJSON reads an object.
func (e *Env) UnmarshalJSON(b []byte) error {
	var list Env
	err := readObject(b, func(name string, value *json.Decoder) error {
		v := Variable{Name: name}
		if err := value.Decode(&v.Value); err != nil {
			return Errorf(Invalid, "variable %q: must be a string", clip(name))
		}
		list = append(list, v)
		return nil
	})
	*e = list.sorted()
	return errors.Join(err, e.ordered())
}

// MarshalYAML writes a mapping.
func (e Env) MarshalYAML() (any, error) {
	m := make(map[string]string, len(e))
	for _, v := range e {
		m[v.Name] = v.Value
	}
	return m, nil
}

// UnmarshalYAML reads a mapping, in which the YAML reader refuses a name that
// is given twice; numbers and booleans are taken as they stand in it.
func (e *Env) UnmarshalYAML(decode func(any) error) error {
	var m map[string]string
	err := decode(&m)
	var list Env
	for name, value := range m {
		list = append(list, Variable{name, value})
	}
	*e = list.sorted()
	return err
}

func (e Env) sorted() Env {
	slices.SortFunc(e, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return e
}

// ordered refuses a list that is out of order or names a variable twice.
func (e Env) ordered() error {
	return inOrder("variable", len(e), func(i int) string { return e[i].Name })
}

// Overlaid returns the variables of both, those of over where a name is in
// both. Both are in order, and so is the result.
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

func inOrder(what string, n int, name func(int) string) error {
	for i := 1; i < n; i++ {
		switch c := strings.Compare(name(i-1), name(i)); {
		case c == 0:
			return Errorf(Invalid, "%s %q: is given twice", what, clip(name(i)))
		case c > 0:
			return Errorf(Invalid, "%s %q: comes after %q; sort them by name", what, clip(name(i)), clip(name(i-1)))
		}
	}
	return nil
}

func writeObject(n int, pair func(i int) (string, any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, value := pair(i)
		key, _ := encodeJSON(name)
		v, err := encodeJSON(value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// readObject calls pair for each name of an object or null, with the decoder
// before the value.
func readObject(data []byte, pair func(name string, value *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	if err != nil || first == nil {
		return err
	}
	if first != json.Delim('{') {
		return Errorf(Invalid, "is %s, must be an object like {\"name\": value}", jsonSort(first))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := pair(name.(string), d); err != nil {
			return err
		}
	}
	if _, err = d.Token(); err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
