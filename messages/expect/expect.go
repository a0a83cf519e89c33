// Package expect lets tests compare several values at once, and says which of them differ. Only tests import it.
package expect

import "reflect"

// test is what Same needs of a *testing.T or *rapid.T.
type test interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Same fails the test if values differ from the wanted values, and names each value that differs. The arguments are
// triples: a name, the value, and the wanted value. A wanted number is converted to the type of the value. Example:
// expect.Same(t, "Held", j.Held, 100, "State", j.State, job.Waiting).
func Same(t test, values ...any) {
	t.Helper()
	failed := false
	for ; len(values) > 0; values = values[3:] {
		got, want := values[1], values[2]
		if g := reflect.ValueOf(got); want == nil && g.Kind() == reflect.Pointer && g.IsNil() {
			got = nil
		}
		if w := reflect.ValueOf(want); got != nil && w.IsValid() && w.CanInt() && w.CanConvert(reflect.TypeOf(got)) {
			want = w.Convert(reflect.TypeOf(got)).Interface()
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v is %v, want %v", values[0], got, want)
			failed = true
		}
	}
	if failed {
		t.FailNow()
	}
}
