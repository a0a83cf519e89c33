package wire

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
)

func marshalJSON(v reflect.Value) ([]byte, error) {
	data, err := encodeJSON(withLists(v).Interface())
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "cannot encode %v: %v", v.Type(), err)
	}
	return data, nil
}

// encodeJSON leaves '<', '>' and '&' as they are, because the text is not HTML.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// withLists returns v with an empty list in place of every nil list.
func withLists(v reflect.Value) reflect.Value {
	t := v.Type()
	if ownJSON(t) {
		return v
	}
	out := reflect.New(t).Elem()
	out.Set(v)
	switch t.Kind() {
	case reflect.Slice:
		out.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
		fallthrough
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			reflect.Copy(out, v)
			break
		}
		for i := range v.Len() {
			out.Index(i).Set(withLists(v.Index(i)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(t.Elem()))
			out.Elem().Set(withLists(v.Elem()))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				out.Field(i).Set(withLists(v.Field(i)))
			}
		}
	}
	return out
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// ownJSON reports whether a type has its own JSON encoding.
func ownJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonMarshaler) || p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// unmarshalJSON walks through the payload and the type together, so that errors name the path of a field. It refuses
// unknown fields, fields in another spelling, and repeated fields, which encoding/json accepts.
func unmarshalJSON(data []byte, v reflect.Value, of *reader) error {
	if !utf8.Valid(data) {
		return messages.Errorf(messages.Invalid, "%s: payload is not valid UTF-8", v.Type().Name())
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data)), budget: budgetFor(data), of: of}
	if err := r.value(v); err != nil {
		return refusal(v.Type(), jsonMisfit(err))
	}
	if _, err := r.Token(); err != io.EOF {
		return messages.Errorf(messages.Invalid, "%s: payload goes on after its end; send one value", v.Type().Name())
	}
	return nil
}

// ReadDocument reads a JSON document into the value that v points to. It is for documents that people write. It follows
// the strict rules of [Unmarshal], with three differences. A field must be present unless its tag says omitempty. Only
// pointers and lists can be null. 3.0 and 3e0 are whole numbers. The error begins with the place in the document. After
// an error v may be partly written.
func ReadDocument(data []byte, v any) error {
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data)), budget: budgetFor(data), document: true, of: &reader{}}
	r.UseNumber()
	err := jsonMisfit(r.value(reflect.ValueOf(v).Elem()))
	if m, ok := errors.AsType[*misfit](err); ok {
		return messages.Errorf(m.kind, "%s: %s", cmp.Or(strings.TrimPrefix(m.path, "."), "document"), m.why)
	}
	if _, end := r.Token(); err == nil && end != io.EOF {
		err = messages.Errorf(messages.Invalid, "text follows the end of the document at byte %d: pass one JSON document", r.InputOffset())
	}
	return err
}

type jsonReader struct {
	*json.Decoder
	budget   int
	document bool // read by the rules of ReadDocument
	of       *reader
}

func (r *jsonReader) value(v reflect.Value) error {
	switch t := v.Type(); {
	case ownJSON(t):
	case r.document && t.Kind() != reflect.Struct && t.Kind() != reflect.Slice:
		return r.written(v)
	case t.Kind() == reflect.Struct:
		return r.object(v, nil)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return r.list(v, nil)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !ownJSON(t.Elem()):
		return r.pointer(v)
	}
	return jsonMisfit(r.Decode(v.Addr().Interface()))
}

// written reads a value of a document. It may be a text, a number or a boolean, or a pointer to such a value, to a
// struct or to a list.
func (r *jsonReader) written(v reflect.Value) error {
	first, err := r.Token()
	if err != nil || first == nil && v.Kind() == reflect.Pointer {
		return err
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		return r.object(v, first)
	case reflect.Slice:
		return r.list(v, first)
	}
	return writtenScalar(v, first)
}

func writtenScalar(v reflect.Value, t json.Token) error {
	number, isNumber := t.(json.Number)
	text, isText := t.(string)
	yes, isBool := t.(bool)
	switch kind := v.Kind(); {
	case kind == reflect.String && isText:
		v.SetString(text)
	case kind == reflect.Bool && isBool:
		v.SetBool(yes)
	case kind == reflect.Float64 && isNumber:
		x, err := number.Float64()
		if err != nil { // the JSON is well formed, so only the range can be wrong
			return unfit("%s does not fit a double: give a finite number", messages.Clipped(number.String()))
		}
		v.SetFloat(x)
	case isNumber && (v.CanInt() || v.CanUint()):
		return writtenWhole(v, number)
	default:
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Float64: "a number"}[kind]
		return unfit("is %s, must be %s", jsonSort(t), cmp.Or(want, "a whole number"))
	}
	return nil
}

// writtenWhole accepts a whole number in any form, such as 3, 3.0 or 3e0. It refuses fractions, and numbers with a
// point or an exponent that a float64 cannot hold exactly.
func writtenWhole(v reflect.Value, n json.Number) error {
	i, err := n.Int64()
	if err != nil {
		x, err := n.Float64()
		if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return unfit("%s is not a whole number that fits the field", messages.Clipped(n.String()))
		}
		i = int64(x)
	}
	switch {
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)):
		v.SetUint(uint64(i))
	default:
		return unfit("%d is out of range", i)
	}
	return nil
}

func (r *jsonReader) pointer(v reflect.Value) error {
	first, err := r.Token()
	if err != nil || first == nil {
		return err
	}
	v.Set(reflect.New(v.Type().Elem()))
	return r.object(v.Elem(), first)
}

// list reads an array or null. If the caller has already read the first token, it passes this token in `first`;
// otherwise `first` is nil.
func (r *jsonReader) list(v reflect.Value, first json.Token) (err error) {
	if first == nil {
		if first, err = r.Token(); err != nil || first == nil {
			return err
		}
	}
	if first != json.Delim('[') {
		return unfit("is %s, must be a list", jsonSort(first))
	}
	if r.document {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list of the document becomes an empty slice, not nil
	}
	size := int(v.Type().Elem().Size())
	for i := 0; r.More(); i++ {
		if r.budget -= size; r.budget < 0 {
			return &misfit{kind: messages.TooLarge, why: "has elements without fields, which take far more memory than the text; send every field of each element"}
		}
		v.Grow(1)
		v.SetLen(i + 1)
		if err := r.value(v.Index(i)); err != nil {
			return under("["+strconv.Itoa(i)+"]", jsonMisfit(err))
		}
	}
	_, err = r.Token()
	return err
}

// object reads an object. If its first token was read already, this is the argument `first`. Otherwise `first` is nil.
func (r *jsonReader) object(v reflect.Value, first json.Token) (err error) {
	if first == nil {
		if first, err = r.Token(); err != nil || first == nil && !r.document {
			return err
		}
	}
	if first != json.Delim('{') {
		return unfit("is %s, must be an object", jsonSort(first))
	}
	fields := fieldsOf(v.Type())
	seen := make(map[string]bool)
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		path, known := fields.at[name]
		if !known && r.of.lenient {
			if err := r.Decode(new(json.RawMessage)); err != nil {
				return err
			}
			continue
		}
		if !known {
			return under("."+messages.Clipped(name), unfit("is no field; the fields are %s", strings.Join(fields.names, ", ")))
		}
		if seen[name] {
			return under("."+name, unfit("is given twice"))
		}
		seen[name] = true
		r.of.level = max(r.of.level, fields.since[name])
		if err := r.value(v.FieldByIndex(path)); err != nil {
			return under("."+name, jsonMisfit(err))
		}
	}
	for _, name := range fields.required {
		if r.document && !seen[name] {
			return under("."+name, unfit("the key is missing: it is required"))
		}
	}
	_, err = r.Token()
	return err
}

// jsonFields finds the fields of a struct by their JSON names. The fields of embedded structs are among them.
type jsonFields struct {
	at       map[string][]int // argument for reflect.Value.FieldByIndex
	names    []string
	required []string       // fields that a document must contain
	since    map[string]int // by field: the level in its tag since; fields without this tag are not listed
}

var jsonFieldsOf sync.Map // reflect.Type → *jsonFields

func fieldsOf(t reflect.Type) *jsonFields {
	if f, ok := jsonFieldsOf.Load(t); ok {
		return f.(*jsonFields)
	}
	f := &jsonFields{at: make(map[string][]int), since: map[string]int{}}
	for _, field := range reflect.VisibleFields(t) {
		if name := jsonName(field); name != "" && !embedded(field) {
			f.at[name] = field.Index
			f.names = append(f.names, name)
			if since, err := sinceOf(field); err == nil && since > 0 {
				f.since[name] = since
			}
			if !strings.Contains(field.Tag.Get("json"), ",omitempty") {
				f.required = append(f.required, name)
			}
		}
	}
	jsonFieldsOf.Store(t, f)
	return f
}

// embedded reports whether JSON puts the fields of a struct field among the outer fields.
func embedded(f reflect.StructField) bool {
	return f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == ""
}

func jsonSort(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		if t == '[' {
			return "a list"
		}
		return "an object"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}

// jsonMisfit turns an error of encoding/json, or of a type's decoding method, into a *misfit: an error about a value
// that does not fit its field.
func jsonMisfit(err error) error {
	var m *misfit
	var e *messages.Error
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil || errors.As(err, &m):
		return err
	case errors.As(err, &e):
		return &misfit{kind: e.Kind, why: e.Message}
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return unfit("JSON was cut: it ends in the middle of a value")
	case errors.As(err, &syntax):
		return unfit("JSON is malformed at byte %d: %v", syntax.Offset, err)
	case errors.As(err, &typed):
		return unfit("is %s, must be %s", jsonFound(typed.Value), jsonWanted(typed.Type))
	}
	return unfit("%v", err)
}

// jsonFound returns words for a JSON value of the wrong kind, for an error message. The argument `sort` is the kind in
// the words of encoding/json, such as "string" or "number -1".
func jsonFound(sort string) string {
	if number, ok := strings.CutPrefix(sort, "number "); ok {
		return messages.Clipped(number)
	}
	if words, ok := map[string]string{"array": "a list", "object": "an object", "bool": "a boolean"}[sort]; ok {
		return words
	}
	return "a " + messages.Clipped(sort)
}

// jsonWanted describes in a few words which JSON values a Go type accepts. The type must not have an UnmarshalJSON
// method.
func jsonWanted(t reflect.Type) string {
	switch v := reflect.New(t).Elem(); {
	case v.CanInt():
		return fmt.Sprintf("a whole number from %d to %d", int64(math.MinInt64)>>(64-t.Bits()), int64(math.MaxInt64)>>(64-t.Bits()))
	case v.CanUint():
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-t.Bits()))
	case v.CanFloat():
		return "a number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "bytes as text in base64"
	case t.Kind() == reflect.Map:
		return "an object"
	}
	return "a string"
}
