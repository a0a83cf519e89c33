package job

import (
	"strings"

	"github.com/candor-grid/candor/messages/wire"
)

var (
	weightsForm = wire.Object[ClassWeight, float64]{
		Pair: func(w ClassWeight) (string, float64) { return w.Class, w.Weight },
		Make: func(class string, weight float64) ClassWeight { return ClassWeight{class, weight} },
		What: "weight", Wrong: "weight of %q: must be a number",
	}
	licensesForm = wire.Object[License, int]{
		Pair: func(l License) (string, int) { return l.Name, l.Count },
		Make: func(name string, count int) License { return License{name, count} },
		What: "licence", Wrong: "licence %q: must be a whole number",
	}
	envForm = wire.Object[Variable, string]{
		Pair: func(v Variable) (string, string) { return v.Name, v.Value },
		Make: func(name, value string) Variable { return Variable{name, value} },
		What: "variable", Wrong: "variable %q: must be a string",
	}
)

// MarshalJSON writes an object.
func (w Weights) MarshalJSON() ([]byte, error) { return weightsForm.WriteJSON(w) }

// UnmarshalJSON reads an object.
func (w *Weights) UnmarshalJSON(b []byte) (err error) {
	*w, err = weightsForm.ReadJSON(b)
	return err
}

// MarshalYAML writes a mapping.
func (w Weights) MarshalYAML() (any, error) { return weightsForm.Mapping(w), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names.
func (w *Weights) UnmarshalYAML(decode func(any) error) (err error) {
	*w, err = weightsForm.ReadYAML(decode)
	return err
}

// MarshalJSON writes an object.
func (e Env) MarshalJSON() ([]byte, error) { return envForm.WriteJSON(e) }

// UnmarshalJSON reads an object.
func (e *Env) UnmarshalJSON(b []byte) (err error) {
	*e, err = envForm.ReadJSON(b)
	return err
}

// MarshalYAML writes the variables as a YAML mapping.
func (e Env) MarshalYAML() (any, error) { return envForm.Mapping(e), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names. For a number or a boolean, the value is the
// text that stands in the file.
func (e *Env) UnmarshalYAML(decode func(any) error) (err error) {
	*e, err = envForm.ReadYAML(decode)
	return err
}

// MarshalJSON writes an object.
func (l Licenses) MarshalJSON() ([]byte, error) { return licensesForm.WriteJSON(l) }

// UnmarshalJSON reads the licences from a JSON object.
func (l *Licenses) UnmarshalJSON(b []byte) (err error) {
	*l, err = licensesForm.ReadJSON(b)
	return err
}

// MarshalYAML writes the licences as a YAML mapping.
func (l Licenses) MarshalYAML() (any, error) { return licensesForm.Mapping(l), nil }

// UnmarshalYAML reads a mapping. The YAML reader refuses repeated names.
func (l *Licenses) UnmarshalYAML(decode func(any) error) (err error) {
	*l, err = licensesForm.ReadYAML(decode)
	return err
}

// Overlaid returns the variables of both lists. For a name in both, the value in the argument `over` counts. Both lists
// must be sorted by name; the result is sorted too.
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
