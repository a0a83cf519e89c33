package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, file string) (out map[string]any) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions(read(t, file), &out, yaml.Strict()); err != nil {
		t.Fatalf("%s: %s", file, yaml.FormatError(err, false, true))
	}
	return out
}

// The alerting rules exist in two copies, because Helm packs no files from outside a chart. The copies must be equal.
func TestRulesAreTheSame(t *testing.T) {
	const original = "../monitoring/rules.yaml"
	if string(read(t, "files/rules.yaml")) != string(read(t, original)) {
		t.Errorf("files/rules.yaml is not %s any more; copy it", original)
	}
}

// The schema of the chart's values must have each value of values.yaml, and no other value.
func TestSchemaCoversValues(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(read(t, "values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	compare(t, "values", parse(t, "values.yaml"), schema)
}

// compare reports properties of a value that its schema does not name. It checks only objects whose schema lists
// properties.
func compare(t *testing.T, path string, value any, schema map[string]any) {
	object, isObject := value.(map[string]any)
	properties, named := schema["properties"].(map[string]any)
	if !isObject || !named {
		return
	}
	for key, v := range object {
		p, ok := properties[key].(map[string]any)
		if !ok {
			t.Errorf("%s.%s: is not in the schema", path, key)
			continue
		}
		compare(t, path+"."+key, v, p)
	}
	for key := range properties {
		if _, ok := object[key]; !ok && key != "global" { // global is a value of Helm itself
			t.Errorf("%s.%s: is in the schema and has no default", path, key)
		}
	}
	if required, ok := schema["required"].([]any); ok {
		for _, key := range required {
			if !slices.Contains(keys(properties), key.(string)) {
				t.Errorf("%s: %v is required and unknown", path, key)
			}
		}
	}
}

func keys(m map[string]any) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

var (
	reference = regexp.MustCompile(`\.Values\.([a-zA-Z.]+)`)
	included  = regexp.MustCompile(`include "([^"]+)"`)
	defined   = regexp.MustCompile(`define "([^"]+)"`)
)

// All values and named templates in the templates must exist. Each value must be used by a template.
func TestTemplatesNameWhatThereIs(t *testing.T) {
	files, err := filepath.Glob("templates/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	var all strings.Builder
	for _, f := range files {
		all.Write(read(t, f))
	}
	values := parse(t, "values.yaml")
	for _, m := range reference.FindAllStringSubmatch(all.String(), -1) {
		if !reaches(values, strings.Split(m[1], ".")) {
			t.Errorf("the templates use .Values.%s, which is not in values.yaml", m[1])
		}
	}
	for part, v := range values {
		if object, ok := v.(map[string]any); ok {
			for key := range object {
				if name := ".Values." + part + "." + key; !strings.Contains(all.String(), name) {
					t.Errorf("%s is used by no template", name)
				}
			}
		}
	}
	there := map[string]bool{}
	for _, m := range defined.FindAllStringSubmatch(all.String(), -1) {
		there[m[1]] = true
	}
	for _, m := range included.FindAllStringSubmatch(all.String(), -1) {
		if !there[m[1]] {
			t.Errorf("the templates include %q, which none defines", m[1])
		}
	}
}

func reaches(value any, path []string) bool {
	for _, step := range path {
		object, _ := value.(map[string]any)
		next, ok := object[step]
		if !ok {
			return false
		}
		value = next
	}
	return true
}
