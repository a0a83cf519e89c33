package schema

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

func filled(r *rand.Rand, zero any) reflect.Value {
	p := reflect.New(reflect.TypeOf(zero))
	fill(r, p.Elem())
	return p
}

func TestRoundTripOfEveryPayload(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, zero := range roots {
		for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
			for range 20 {
				want := filled(r, zero)
				data, err := wire.Marshal(want.Interface(), f)
				if err != nil {
					t.Fatalf("%T: %v", zero, err)
				}
				got := reflect.New(want.Type().Elem())
				if err := wire.Unmarshal(data, f, got.Interface()); err != nil {
					t.Fatalf("%T from %q: %v", zero, data, err)
				}
				if !reflect.DeepEqual(got.Interface(), want.Interface()) {
					t.Fatalf("%T: got %+v, want %+v", zero, got, want)
				}
				if wire.Detect(data, "") != f {
					t.Fatalf("%T: %q is not seen to be of format %v", zero, data, f)
				}
			}
		}
	}
}

func TestCutPayloads(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, zero := range roots {
		whole := filled(r, zero)
		for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
			data, err := wire.Marshal(whole.Interface(), f)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n < len(data); n += 1 + n/128 { // each of the first 128 prefixes, then fewer and fewer
				got := reflect.New(whole.Type().Elem())
				err := wire.Unmarshal(data[:n], f, got.Interface())
				if messages.KindOf(err) != messages.Invalid || !got.Elem().IsZero() {
					t.Fatalf("%T cut at byte %d of %d: %v, and %+v is left", zero, n, len(data), err, got)
				}
			}
			if err := wire.Unmarshal(append(data, 0xc0), f, reflect.New(whole.Type().Elem()).Interface()); messages.KindOf(err) != messages.Invalid {
				t.Fatalf("%T with a byte more: %v", zero, err)
			}
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for i, zero := range roots {
		for _, format := range []wire.Format{wire.Msgpack, wire.JSON} {
			data, err := wire.Marshal(filled(r, zero).Interface(), format)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		zero := roots[int(which)%len(roots)]
		format := wire.Detect(data, "")
		first := reflect.New(reflect.TypeOf(zero))
		if err := wire.Unmarshal(data, format, first.Interface()); err != nil {
			if k := messages.KindOf(err); k != messages.Invalid && k != messages.TooLarge {
				t.Fatalf("refused as %v: %v", k, err)
			}
			return
		}
		again, err := wire.Marshal(first.Interface(), wire.Msgpack)
		if err != nil {
			t.Fatalf("decoded, but: %v", err)
		}
		second := reflect.New(reflect.TypeOf(zero))
		if err := wire.Unmarshal(again, wire.Msgpack, second.Interface()); err != nil {
			t.Fatalf("what was encoded does not decode: %v", err)
		}
		if twice, _ := wire.Marshal(second.Interface(), wire.Msgpack); !bytes.Equal(again, twice) {
			t.Fatalf("%x is %x the second time", again, twice)
		}
	})
}
