package wire_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/wire"
)

// These types are the same struct in two releases: `before` in the first release, and `after` two releases later.
type before struct {
	A int      `json:"a"`
	L []string `json:"l"`
}

type after struct {
	A int      `json:"a"`
	L []string `json:"l"`
	B string   `json:"b,omitempty" since:"2"`
	M []string `json:"m,omitempty" since:"2"`
	C *before  `json:"c,omitempty" since:"3"`
}

func encoded(t *testing.T, v any, f wire.Format) []byte {
	t.Helper()
	data, err := wire.Marshal(v, f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// New fields of a struct may be empty. Then the struct's bytes must equal the bytes that the earlier release would
// write, so that a replica of the earlier release can read them.
func TestANewFieldThatIsEmptyIsLeftOut(t *testing.T) {
	old := encoded(t, before{A: 7, L: []string{"x"}}, wire.Msgpack)
	for _, grown := range []after{{A: 7, L: []string{"x"}}, {A: 7, L: []string{"x"}, M: []string{}}} {
		if got := encoded(t, grown, wire.Msgpack); !bytes.Equal(got, old) {
			t.Errorf("%+v is %x, want %x", grown, got, old)
		}
	}
	if list := encoded(t, before{}, wire.Msgpack); list[0] != 0x92 {
		t.Errorf("a field of the first release was left out: %x", list)
	}
}

// A field belongs to a level. The level of a payload must be the highest level of the fields that it contains. This
// must hold in MessagePack and in JSON.
func TestTheLevelOfAPayload(t *testing.T) {
	for want, v := range map[int]after{1: {A: 7}, 2: {B: "x"}, 3: {C: &before{}}} {
		for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
			var got struct {
				After after `json:"after"`
			}
			level, err := wire.UnmarshalLevel(encoded(t, struct {
				After after `json:"after"`
			}{v}, f), f, &got)
			if err != nil || level != want || got.After.B != v.B {
				t.Errorf("%+v, format %d: level %d, %v, want %d", v, f, level, err, want)
			}
		}
	}
}

// A request with an unknown field must be refused, because this release would not do what the sender asked. A reply
// must be read without the field.
func TestRepliesMayHaveMoreFields(t *testing.T) {
	type list[T any] struct {
		All []T `json:"all"`
	}
	newer := list[after]{[]after{{A: 1, L: []string{"x"}, B: "a long text of more than thirty-two bytes", M: []string{"y", "z"}, C: &before{A: 300, L: []string{"w"}}}, {A: 2}}}
	for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
		data := encoded(t, newer, f)
		var got list[before]
		if err := wire.Unmarshal(data, f, &got); err == nil || !strings.Contains(err.Error(), "all[0]") {
			t.Errorf("format %d: as a request: %v", f, err)
		}
		if err := wire.UnmarshalReply(data, &got); err != nil {
			t.Fatal(err)
		}
		want := list[before]{[]before{{A: 1, L: []string{"x"}}, {A: 2}}}
		if f == wire.JSON {
			want.All[1].L = []string{}
		}
		if len(got.All) != 2 || !reflect.DeepEqual(got.All[0], want.All[0]) || got.All[1].A != 2 {
			t.Errorf("format %d: %+v, want %+v", f, got, want)
		}
	}
}

// The tag `since` has the level of the release that added a field. A field must not have a lower level than the field
// before it. A level must be a number.
func TestTagsOfLevels(t *testing.T) {
	type falls struct {
		A int `since:"3"`
		B int
	}
	type odd struct {
		A int `since:"soon"`
	}
	for _, v := range []any{falls{}, odd{}} {
		if _, err := wire.Marshal(v, wire.Msgpack); err == nil {
			t.Errorf("%T has an encoding", v)
		}
	}
}
