package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// check is an obvious validator for the part of JSON Schema used here.
func check(root, s *Schema, v any, path string) error {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return check(root, root.Defs[name], v, path)
	}
	for _, option := range s.AnyOf {
		if check(root, option, v, path) == nil {
			return nil
		}
	}
	if s.AnyOf != nil || !hasType(s.Type, v) {
		return fmt.Errorf("%s: %v is no %v", path, v, s.Type)
	}
	switch v := v.(type) {
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			return fmt.Errorf("%s: %q is none of %v", path, v, s.Enum)
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			return fmt.Errorf("%s: %v is out of range", path, v)
		}
	case []any:
		for i, item := range v {
			if err := check(root, s.Items, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return checkObject(root, s, v, path)
	}
	return nil
}

func checkObject(root, s *Schema, v map[string]any, path string) error {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s.%s: missing", path, name)
		}
	}
	for name, value := range v {
		further, _ := s.Further.(*Schema)
		property, ok := s.Properties[name]
		if !ok && further == nil {
			return fmt.Errorf("%s.%s: unknown", path, name)
		}
		if !ok {
			property = further
		}
		if err := check(root, property, value, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func hasType(want, v any) bool {
	types, ok := want.([]string)
	if !ok {
		types = []string{fmt.Sprint(want)}
	}
	got := map[reflect.Type]string{nil: "null", reflect.TypeFor[bool](): "boolean", reflect.TypeFor[string](): "string",
		reflect.TypeFor[float64](): "number", reflect.TypeFor[[]any](): "array", reflect.TypeFor[map[string]any](): "object"}[reflect.TypeOf(v)]
	f, _ := v.(float64)
	return slices.Contains(types, got) || slices.Contains(types, "integer") && got == "number" && f == float64(int64(f))
}

// fill sets every field of a value to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("linear")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	default:
		v.SetInt(1_500_000)
	}
}

// What the site writes, of an empty message and of a full one, fits the schema.
func TestMessagesFitTheirSchemas(t *testing.T) {
	for _, m := range Catalogue() {
		empty, full := reflect.New(m.of).Elem(), reflect.New(m.of).Elem()
		fill(full)
		for _, v := range []reflect.Value{empty, full} {
			text, err := messages.Marshal(v.Interface(), messages.JSON)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			if err := check(m.Schema(), m.Schema(), value, m.Name); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
}

// The schema refuses what the decoder refuses.
func TestSchemasRefuse(t *testing.T) {
	m, ok := Find("submitrequest")
	if !ok {
		t.Fatal("no SubmitRequest")
	}
	good := `{"key":"k","spec":{"budget":1,"stages":[{"name":"a","script":"date"}]}}`
	for text, want := range map[string]string{
		good: "",
		strings.Replace(good, `"key"`, `"kee"`, 1):                                               "SubmitRequest.key: missing",
		strings.Replace(good, `"name":"a"`, `"name":"a","x":1`, 1):                               "SubmitRequest.spec.stages[0].x: unknown",
		strings.Replace(good, `"budget":1`, `"budget":"much"`, 1):                                "is no number",
		strings.Replace(good, `"budget":1`, `"budget":1e13`, 1):                                  "out of range",
		strings.Replace(good, `"name":"a"`, `"name":"a","tasks":1.5`, 1):                         "is no integer",
		strings.Replace(good, `"name":"a"`, `"name":"a","env":{"A":1}`, 1):                       "env.A: 1 is no string",
		strings.Replace(good, `"budget":1`, `"budget":1,"utility":{"form":"x","weights":{}}`, 1): "utility",
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		err := check(m.Schema(), m.Schema(), value, m.Name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestEnumerationsAreComplete(t *testing.T) {
	for want, names := range map[int][]string{
		14: namesOf(reflect.TypeFor[messages.Kind]()),
		6:  namesOf(reflect.TypeFor[messages.State]()),
		4:  namesOf(reflect.TypeFor[messages.Outcome]()),
	} {
		if len(names) < want {
			t.Errorf("%d names, want at least %d: %v", len(names), want, names)
		}
	}
}

func TestEveryReplyHasASchema(t *testing.T) {
	for _, m := range Catalogue() {
		if m.Reply == "" {
			continue
		}
		if _, ok := Find(m.Reply); !ok {
			t.Errorf("%s is answered by %s, which is not in the catalogue", m.Subject, m.Reply)
		}
	}
}
