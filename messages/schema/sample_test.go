package schema

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
)

// fill sets every field of v to a random value that JSON can express. Lists are not empty and pointers are not nil. v
// must be settable.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(drawInteger(r, v.Type()))
	case reflect.Uint8:
		v.SetUint(r.Uint64N(4)) // each enumeration has at least four members
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Float32:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.String:
		fillText(r, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		fillList(r, v)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	}
}

// drawInteger returns a random integer of any order of magnitude.
func drawInteger(r *rand.Rand, t reflect.Type) int64 {
	switch t.Name() {
	case "Exit":
		return r.Int64N(257) - 1
	case "Credits", "Price", "Time": // up to the year 8307, which RFC 3339 can express
		return r.Int64N(200_000_000_000_000_000) >> r.IntN(60)
	}
	i := r.Int64() >> r.IntN(64) >> (64 - t.Bits())
	if r.IntN(2) == 0 {
		return -i
	}
	return i
}

func fillText(r *rand.Rand, v reflect.Value) {
	if v.Type().Name() == "Form" {
		v.SetString([]string{"linear", "log"}[r.IntN(2)])
		return
	}
	v.SetString(strings.Repeat("é<&\x01x", r.IntN(9)))
}

// fillList fills a list with random elements. Some types of list become an object in JSON. For these types, the names
// of the elements are in ascending order.
func fillList(r *rand.Rand, v reflect.Value) {
	n := 1 + r.IntN(3)
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		fill(r, v.Index(i))
		if name := v.Type().Name(); name == "Weights" || name == "Env" || name == "Licenses" || name == "Labels" {
			v.Index(i).Field(0).SetString(fmt.Sprint("name", i))
		}
	}
}
