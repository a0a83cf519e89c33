package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

var update = flag.Bool("update", false, "write the schemas again")

func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	var want []string
	for _, zero := range roots {
		typ := reflect.TypeOf(zero)
		want = append(want, typ.Name())
		data, err := json.MarshalIndent(generate(typ), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, '\n')
		if *update {
			if err := os.WriteFile(filepath.Join("files", typ.Name()+".json"), data, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := Get(typ.Name()); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: the schema is not that of the type: run this test with -update (%v)", typ.Name(), err)
		}
	}
	slices.Sort(want)
	if got := Names(); !*update && !slices.Equal(got, want) {
		t.Errorf("there are schemas %q, types %q", got, want)
	}
}

func TestVerbsHaveSchemas(t *testing.T) {
	for _, v := range Verbs() {
		for _, name := range []string{v.Request, v.Reply} {
			if _, err := Get(name); err != nil {
				t.Errorf("%s %s: %v", v.Actor, v.Verb, err)
			}
		}
	}
	if _, err := Get("../schema"); messages.KindOf(err) != messages.NotFound {
		t.Errorf("got %v", err)
	}
}

// Every type of message has a JSON schema. The JSON that Marshal writes must be valid by this schema, for zero values
// and for filled values.
func TestPayloadsFitTheirSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, zero := range roots {
		schema := load(t, reflect.TypeOf(zero).Name())
		for i := range 20 {
			v := reflect.New(reflect.TypeOf(zero))
			if i > 0 {
				fill(r, v.Elem())
			}
			data, err := wire.Marshal(v.Interface(), wire.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.check(parse(t, data), schema.Defs); err != nil {
				t.Fatalf("%T: %v in %s", zero, err, data)
			}
		}
	}
}

func TestCheckRefusesWhatDoesNotFit(t *testing.T) {
	schema := load(t, "SubmitRequest")
	for _, bad := range []string{
		`[]`, `{}`, `{"key":1,"spec":{"budget":1,"stages":[]}}`, `{"key":"k","spec":{"budget":1,"stages":{}}}`,
		`{"key":"k","spec":{"budget":1,"stages":[]},"x":1}`, `{"key":"k","spec":{"budget":true,"stages":[]}}`,
		`{"key":"k","spec":{"budget":1e13,"stages":[]}}`, `{"key":"k","spec":{"budget":"1.1234567","stages":[]}}`,
		`{"key":"k","spec":{"budget":1,"stages":[{"name":"a","tasks":1.5}]}}`,
		`{"key":"k","spec":{"budget":1,"stages":[],"env":{"A":1}}}`,
		`{"key":"k","spec":{"budget":1,"stages":[],"utility":{"form":"square","weights":{}}}}`,
	} {
		if err := schema.check(parse(t, []byte(bad)), schema.Defs); err == nil {
			t.Errorf("%s fits", bad)
		}
	}
	good := `{"key":"k","spec":{"budget":"1.5","stages":[{"name":"a"}],"utility":null}}`
	if err := schema.check(parse(t, []byte(good)), schema.Defs); err != nil {
		t.Errorf("%s: %v", good, err)
	}
}

// In a request for several jobs, the fields key and spec of the request itself are missing. The documented example of
// such a request must fit the schema.
func TestSeveralJobsFitTheSchema(t *testing.T) {
	several := `{"jobs":[{"key":"a","spec":{"budget":1,"stages":[{"name":"main","command":["hostname"]}]}}]}`
	schema := load(t, "SubmitRequest")
	if err := schema.check(parse(t, []byte(several)), schema.Defs); err != nil {
		t.Errorf("%s: %v", several, err)
	}
	var r job.SubmitRequest
	if err := wire.Unmarshal([]byte(several), wire.JSON, &r); err != nil || len(r.Jobs) != 1 {
		t.Errorf("got %+v: %v", r, err)
	}
}

func load(t *testing.T, name string) *node {
	data, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	n := new(node)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(n); err != nil {
		t.Fatal(err)
	}
	return n
}

func parse(t *testing.T, data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// check returns an error if a value does not fit a schema.
func (n *node) check(v any, defs map[string]*node) error {
	if n.Ref != "" {
		n = defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
	}
	if len(n.AnyOf) > 0 {
		if !slices.ContainsFunc(n.AnyOf, func(a *node) bool { return a.check(v, defs) == nil }) {
			return fmt.Errorf("%v fits none of several", v)
		}
		if n.Type == "" {
			return nil
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return n.checkObject(v, defs)
	case []any:
		for i, item := range v {
			if err := n.typed("array"); err != nil {
				return err
			}
			if err := n.Items.check(item, defs); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return n.typed("array")
	case json.Number:
		return n.checkNumber(v)
	case string:
		if n.Enum != nil && !slices.Contains(n.Enum, v) || !regexp.MustCompile(n.Pattern).MatchString(v) {
			return fmt.Errorf("%q is not one of %q or does not match %q", v, n.Enum, n.Pattern)
		}
		return n.typed("string")
	case bool:
		return n.typed("boolean")
	}
	return n.typed("null")
}

func (n *node) typed(want string) error {
	if n.Type != want {
		return fmt.Errorf("is of type %s, must be %s", want, n.Type)
	}
	return nil
}

func (n *node) checkNumber(v json.Number) error {
	f, err := v.Float64()
	if err != nil {
		return err
	}
	low, lowErr := n.Minimum.Float64()
	high, highErr := n.Maximum.Float64()
	if lowErr == nil && f < low {
		return fmt.Errorf("%v is less than %v", v, low)
	}
	if highErr == nil && f > high {
		return fmt.Errorf("%v is more than %v", v, high)
	}
	if n.Type == "integer" && !strings.ContainsAny(string(v), ".eE") {
		return nil
	}
	return n.typed("number")
}

func (n *node) checkObject(v map[string]any, defs map[string]*node) error {
	for _, name := range n.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	if n.Type == "" { // the schema is one of several alternative lists of required fields
		return nil
	}
	if err := n.typed("object"); err != nil {
		return err
	}
	for name, value := range v {
		property := n.Properties[name]
		if property == nil && n.Additional != nil {
			property = n.Additional.of
		}
		if property == nil {
			return fmt.Errorf("%s is unknown", name)
		}
		if err := property.check(value, defs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
