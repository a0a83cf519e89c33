// Package casefile reads the JSON documents of `candor solve` strictly: a
// document that is not exactly what a mechanism expects is refused with a
// *messages.Error of kind Invalid that names the place, like jobs[3].budget,
// and says what to do. Nothing is guessed, defaulted or silently dropped.
//
// The expected shape is a Go value: structs with `json:"key"` tags, slices,
// pointers, float64, the integer kinds, string and bool. A key is required unless
// its tag says omitempty; null is taken only by pointers and slices. Keys are
// matched exactly, letter case included. The keys of an embedded struct are its
// struct's.
package casefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Decode reads data, one JSON document, into what v points to. It refuses
// unknown and repeated keys, missing required keys, numbers that are not
// finite or do not fit, and anything after the document. On an error v may be
// partly written.
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	r := reader{d, map[reflect.Type][]field{}}
	if err := r.value("", reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return messages.Errorf(messages.Invalid, "there is more after the document ends at byte %d: pass one JSON document", d.InputOffset())
	}
	return nil
}

// Invalid makes the error of a place in a document; the message says what is
// wrong there and what to do.
func Invalid(path, format string, args ...any) error {
	if path == "" {
		path = "document"
	}
	return messages.Errorf(messages.Invalid, "%s: %s", path, fmt.Sprintf(format, args...))
}

// reader walks the tokens of a document along the Go value they fill.
type reader struct {
	*json.Decoder
	known map[reflect.Type][]field
}

func (r reader) next(path string) (json.Token, error) {
	t, err := r.Token()
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, Invalid(path, "the document ends too early: pass a whole JSON document")
	default:
		return nil, Invalid(path, "not JSON near byte %d: %v", r.InputOffset(), err)
	}
}

func (r reader) value(path string, v reflect.Value) error {
	t, err := r.next(path)
	if err != nil {
		return err
	}
	return r.assign(path, v, t)
}

func (r reader) assign(path string, v reflect.Value, t json.Token) error {
	switch v.Kind() {
	case reflect.Pointer:
		if t == nil {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.assign(path, v.Elem(), t)
	case reflect.Struct:
		return r.object(path, v, t)
	case reflect.Slice:
		return r.array(path, v, t)
	default:
		return scalar(path, v, t)
	}
}

func (r reader) object(path string, v reflect.Value, t json.Token) error {
	if t != json.Delim('{') {
		return mismatch(path, "an object", t)
	}
	fields := r.fieldsOf(v.Type())
	seen := make([]bool, len(fields))
	for {
		t, err := r.next(path)
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok { // the closing brace
			return missing(path, fields, seen)
		}
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if at < 0 {
			return Invalid(join(path, key), "unknown key; known here are %s", names(fields))
		}
		if seen[at] {
			return Invalid(join(path, key), "the key is given twice: give it once")
		}
		seen[at] = true
		if err := r.value(join(path, key), v.FieldByIndex(fields[at].index)); err != nil {
			return err
		}
	}
}

func (r reader) array(path string, v reflect.Value, t json.Token) error {
	if t == nil {
		v.SetZero()
		return nil
	}
	if t != json.Delim('[') {
		return mismatch(path, "a list", t)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; ; i++ {
		place := path + "[" + strconv.Itoa(i) + "]"
		t, err := r.next(place)
		if err != nil {
			return err
		}
		if t == json.Delim(']') {
			return nil
		}
		if i == v.Cap() {
			v.Grow(max(8, i))
		}
		v.SetLen(i + 1)
		if err := r.assign(place, v.Index(i), t); err != nil {
			return err
		}
	}
}

func scalar(path string, v reflect.Value, t json.Token) error {
	switch v.Kind() {
	case reflect.String:
		s, ok := t.(string)
		if !ok {
			return mismatch(path, "a string", t)
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := t.(bool)
		if !ok {
			return mismatch(path, "true or false", t)
		}
		v.SetBool(b)
	case reflect.Float64:
		return float(path, v, t)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint32, reflect.Uint64:
		return integer(path, v, t)
	default:
		return messages.Errorf(messages.Internal, "%s: no way to read a %v", path, v.Type())
	}
	return nil
}

func float(path string, v reflect.Value, t json.Token) error {
	n, ok := t.(json.Number)
	if !ok {
		return mismatch(path, "a number", t)
	}
	x, err := strconv.ParseFloat(n.String(), 64)
	if err != nil { // JSON's grammar was checked: only the range can be wrong
		return Invalid(path, "%s does not fit a double: give a finite number", clip(n.String()))
	}
	v.SetFloat(x)
	return nil
}

// integer takes 3, 3.0 and 3e0, but no fraction and nothing that a double
// could not hold exactly.
func integer(path string, v reflect.Value, t json.Token) error {
	n, ok := t.(json.Number)
	if !ok {
		return mismatch(path, "a whole number", t)
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		x, ferr := strconv.ParseFloat(n.String(), 64)
		if ferr != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return Invalid(path, "%s is not a whole number that fits", clip(n.String()))
		}
		i = int64(x)
	}
	if v.CanInt() && !v.OverflowInt(i) {
		v.SetInt(i)
		return nil
	}
	if v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)) {
		v.SetUint(uint64(i))
		return nil
	}
	return Invalid(path, "%d is out of range", i)
}

func mismatch(path, want string, got json.Token) error {
	have := "null"
	switch t := got.(type) {
	case json.Delim:
		have = map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		have = fmt.Sprintf("the string %q", clip(t))
	case json.Number:
		have = "the number " + clip(t.String())
	case bool:
		have = strconv.FormatBool(t)
	}
	return Invalid(path, "must be %s, is %s", want, have)
}

func join(path, key string) string {
	key = clip(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

// clip keeps a stranger's text short enough to repeat in an error.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// field is a key that an object may have.
type field struct {
	key      string
	index    []int // of the struct field, which may be one of an embedded struct
	optional bool
}

// fieldsOf returns the keys of a struct, looked up once for a document: a list
// of a million objects shares them.
func (r reader) fieldsOf(t reflect.Type) []field {
	if known, ok := r.known[t]; ok {
		return known
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if key, options, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			fields = append(fields, field{key, f.Index, strings.Contains(options, "omitempty")})
		}
	}
	r.known[t] = fields
	return fields
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
