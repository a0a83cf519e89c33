package document

import (
	"reflect"
	"strings"
)

// field is a key that an object may have.
type field struct {
	key      string
	index    int // of the struct field
	optional bool
}

// fieldsOf returns the keys of a struct, looked up once for a document: a list
// of a million objects shares them.
func (r reader) fieldsOf(t reflect.Type) []field {
	if known, ok := r.known[t]; ok {
		return known
	}
	var fields []field
	for i := range t.NumField() {
		key, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		fields = append(fields, field{key, i, strings.Contains(options, "omitempty")})
	}
	r.known[t] = fields
	return fields
}

func find(fields []field, key string) int {
	for i := range fields {
		if fields[i].key == key {
			return i
		}
	}
	return -1
}

func missing(path string, fields []field, seen []bool) error {
	for i, f := range fields {
		if !seen[i] && !f.optional {
			return Invalid(join(path, f.key), "the key is missing: it is required")
		}
	}
	return nil
}

func names(fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return strings.Join(keys, ", ")
}
