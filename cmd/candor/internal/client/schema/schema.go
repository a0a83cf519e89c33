package schema

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Schema is a JSON schema, as far as these types need one.
type Schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        any                `json:"type,omitempty"` // a name, or a list of them
	AnyOf       []*Schema          `json:"anyOf,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Format      string             `json:"format,omitempty"`
	Encoding    string             `json:"contentEncoding,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Maximum     *float64           `json:"maximum,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Further is a schema for fields without a name here, or false for none.
	Further any                `json:"additionalProperties,omitempty"`
	Defs    map[string]*Schema `json:"$defs,omitempty"`
}

const dialect = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the schema of the message. Structs within it stand in $defs.
func (m Message) Schema() *Schema {
	w := writer{defs: map[string]*Schema{}}
	s := w.object(m.of)
	s.Dialect, s.Title = dialect, m.Name
	s.Description = uses(m.Name)
	if len(w.defs) > 0 {
		s.Defs = w.defs
	}
	return s
}

// uses says which requests a message is, "" if it is none.
func uses(name string) string {
	var sentences []string
	for _, m := range Catalogue() {
		if m.Name == name && m.Subject != "" {
			sentences = append(sentences, "Request to "+m.Subject+", answered by "+m.Reply+".")
		}
	}
	return strings.Join(sentences, " ")
}

// writer collects the definitions that a schema refers to.
type writer struct{ defs map[string]*Schema }

// of is the schema of a type.
func (w *writer) of(t reflect.Type) *Schema {
	if s := special(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return &Schema{AnyOf: []*Schema{w.of(t.Elem()), {Type: "null"}}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &Schema{Type: "string", Encoding: "base64"}
		}
		return &Schema{Type: "array", Items: w.of(t.Elem())}
	case reflect.Struct:
		if _, known := w.defs[t.Name()]; !known {
			w.defs[t.Name()] = nil // so that a type within itself ends here
			w.defs[t.Name()] = w.object(t)
		}
		return &Schema{Ref: "#/$defs/" + t.Name()}
	}
	return scalar(t)
}

func scalar(t reflect.Type) *Schema {
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return &Schema{Type: "boolean"}
	case k == reflect.String:
		return &Schema{Type: "string"}
	case k == reflect.Float32 || k == reflect.Float64:
		return &Schema{Type: "number"}
	case k >= reflect.Uint && k <= reflect.Uint64:
		return &Schema{Type: "integer", Minimum: new(float64)}
	}
	return &Schema{Type: "integer"}
}

// special is the schema of a type that writes itself in JSON, nil for others.
func special(t reflect.Type) *Schema {
	bound := messages.MaxCredits.Float()
	lowest := -bound
	switch t {
	case reflect.TypeFor[messages.Credits]():
		return &Schema{Type: "number", Minimum: &lowest, Maximum: &bound, Description: "credits, with at most six decimal places"}
	case reflect.TypeFor[messages.Time]():
		return &Schema{Type: []string{"string", "null"}, Format: "date-time", Description: "null is never, or not yet"}
	case reflect.TypeFor[messages.Duration]():
		return &Schema{Type: []string{"string", "number"}, Description: `like "1h30m", or a number of seconds`}
	case reflect.TypeFor[messages.Env]():
		return &Schema{Type: "object", Further: &Schema{Type: "string"}}
	case reflect.TypeFor[messages.Weights]():
		return &Schema{Type: "object", Further: &Schema{Type: "number"}}
	case reflect.TypeFor[messages.Form]():
		return &Schema{Type: "string", Enum: []string{"", string(messages.Linear), string(messages.Log)}}
	}
	if names := namesOf(t); names != nil {
		return &Schema{Type: "string", Enum: names}
	}
	return nil
}

// namesOf lists the names of an enumeration: a small unsigned integer that
// writes itself as text and reads back every name it writes as the same value.
func namesOf(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Uint8 || !t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	for i := range 256 {
		v, back := reflect.New(t), reflect.New(t)
		v.Elem().SetUint(uint64(i))
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil || back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text) != nil || back.Elem().Uint() != uint64(i) {
			return names
		}
		names = append(names, string(text))
	}
	return names
}

// object is the schema of a struct; the fields of embedded structs are its own.
func (w *writer) object(t reflect.Type) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, Further: false}
	w.fields(t, s)
	return s
}

func (w *writer) fields(t reflect.Type, s *Schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			w.fields(f.Type, s)
			continue
		}
		s.Properties[name] = w.of(f.Type)
		if options != "omitempty" {
			s.Required = append(s.Required, name)
		}
	}
}
