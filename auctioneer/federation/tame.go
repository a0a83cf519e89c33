package federation

import (
	"math"
	"reflect"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are bounds for the values in every answer of a peer.
const (
	maxItems    = 100_000             // elements of a list
	lastTime    = 253_402_300_799e6   // the end of the year 9999, in microseconds: later times cannot be written as text
	longestSpan = 100 * 365 * 86400e9 // 100 years
	largest     = 1e15
)

// Tame changes the values in a peer's answer, so that terminals, JSON and browsers can show them. Texts become
// printable and short. Numbers become finite. Times are put between 1970 and 9999. Bytes stay unchanged. The argument
// is a pointer to the answer.
func Tame(reply any) { tame(reflect.ValueOf(reply)) }

func tame(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			tame(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				tame(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.Len() > maxItems {
			v.SetLen(maxItems)
		}
		for i := range v.Len() {
			tame(v.Index(i))
		}
	case reflect.String:
		v.SetString(job.Printable(v.String(), job.MaxForeignText))
	case reflect.Float32, reflect.Float64:
		if x := v.Float(); math.IsNaN(x) {
			v.SetFloat(0)
		} else {
			v.SetFloat(max(-largest, min(x, largest)))
		}
	case reflect.Int, reflect.Int64:
		least, most := boundsOf(v.Interface())
		v.SetInt(max(least, min(v.Int(), most)))
	}
}

// boundsOf returns the smallest and largest sensible value of a numeric type.
func boundsOf(x any) (least, most int64) {
	switch x.(type) {
	case messages.Time:
		return 0, lastTime
	case messages.Duration:
		return 0, longestSpan
	case messages.Credits:
		return -int64(messages.MaxCredits), int64(messages.MaxCredits)
	}
	return -1, largest
}
