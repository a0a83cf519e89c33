package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// The test encodes values of each width. The bytes must be the same as the bytes from the msgpack library, which is an
// independent implementation. The library must encode structs as arrays.
func TestBytesAreThoseOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := sorts{
			A: rapid.Int64().Draw(rt, "a"), B: rapid.Uint64().Draw(rt, "b"), C: rapid.Int8().Draw(rt, "c"),
			D: rapid.Float64().Draw(rt, "d"), E: rapid.Float32().Draw(rt, "e"), F: rapid.Bool().Draw(rt, "f"),
			G: strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 31, 32, 255, 256, 65535, 65536}).Draw(rt, "g")),
			H: bytes.Repeat([]byte{7}, rapid.SampledFrom([]int{1, 31, 255, 256, 65535, 65536}).Draw(rt, "h")),
			I: make([]uint16, rapid.SampledFrom([]int{1, 15, 16, 65535, 65536}).Draw(rt, "i")),
		}
		ours, err := wire.Marshal(want, wire.Msgpack)
		if err != nil {
			rt.Fatal(err)
		}
		var b bytes.Buffer
		e := msgpack.NewEncoder(&b)
		e.UseArrayEncodedStructs(true)
		e.UseCompactInts(true)
		if err := e.Encode(want); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(ours, b.Bytes()) {
			rt.Fatalf("%x, the library writes %x", messages.Clipped(string(ours)), messages.Clipped(b.String()))
		}
		var got sorts
		if err := wire.Unmarshal(b.Bytes(), wire.Msgpack, &got); err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// sorts has a field of each kind that a type may contain.
type sorts struct {
	A int64
	B uint64
	C int8
	D float64
	E float32
	F bool
	G string
	H []byte
	I []uint16
}

func sampleExchange() agent.Exchange {
	x := agent.Exchange{Session: 1 << 60, Seq: 77}
	for i := range 16 {
		x.Finished = append(x.Finished, agent.Finished{
			Attempt: messages.Attempt{Task: messages.TaskRef{Job: messages.JobID(1000 + i), Stage: 1, Index: uint32(70000 + i)}, Number: 1},
			Started: 1_700_000_000_000_000, Ended: 1_700_000_001_000_000, CPU: 1e9, MaxRSS: 12 << 20})
		x.Claims = append(x.Claims, agent.Claim{Market: "main", Class: "map", Job: messages.JobID(1000 + i), Slots: 1})
	}
	return x
}

func TestOlderSenderLeavesFieldsZero(t *testing.T) {
	for n, payload := range []string{"\x90", "\x91\x07", "\x92\x07\x08", "\x93\x07\x08\x90", "\x94\x07\x08\x90\xc0"} {
		got := agent.Exchange{Session: 99, Claims: make([]agent.Claim, 3)}
		if err := wire.Unmarshal([]byte(payload), wire.Msgpack, &got); err != nil {
			t.Fatal(err)
		}
		want := agent.Exchange{}
		if n > 0 {
			want.Session = 7
		}
		if n > 1 {
			want.Seq = 8
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%x: got %+v", payload, got)
		}
	}
}

func deep(opening string) []byte { return []byte(strings.Repeat(opening, 1_000_000)) }

func length(code byte, width int, n uint64, rest string) []byte {
	b := binary.BigEndian.AppendUint64(nil, n)
	return append(append([]byte{code}, b[8-width:]...), rest...)
}

func TestHostilePayloads(t *testing.T) {
	type one struct {
		I8  int8            `json:"i8"`
		U32 uint32          `json:"u32"`
		I   int64           `json:"i"`
		F   float32         `json:"f"`
		S   string          `json:"s"`
		B   []byte          `json:"b"`
		L   []agent.Claim   `json:"l"`
		P   *messages.Error `json:"p"`
		O   bool            `json:"o"`
	}
	at := func(field int, value []byte) []byte { // a payload with this value in one field, and no fields after it
		head := append([]byte{0x90 | byte(field+1)}, "\x00\x00\x00\x00\xa0\xc4\x00\x90\xc0"...)
		skip := []int{1, 2, 3, 4, 5, 6, 8, 9, 10}[field]
		return append(head[:skip:skip], value...)
	}
	for name, c := range map[string]struct {
		data []byte
		kind messages.Kind
		say  string
	}{
		"nested a million deep":  {deep("\x91"), messages.Invalid, "deeper"},
		"maps a million deep":    {deep("\x81"), messages.Invalid, ""},
		"array16s a million":     {deep("\xdc\x00\x01"), messages.Invalid, "deeper"},
		"list of 2^32 values":    {length(0xdd, 4, math.MaxUint32, "\x00"), messages.Invalid, "announces"},
		"map of 2^32 pairs":      {length(0xdf, 4, math.MaxUint32, "\x00"), messages.Invalid, "announces"},
		"string of 2^32 bytes":   {at(4, length(0xdb, 4, math.MaxUint32, "abc")), messages.Invalid, "announces"},
		"bytes of 2^32":          {at(5, length(0xc6, 4, math.MaxUint32, "abc")), messages.Invalid, "announces"},
		"string one short":       {at(4, []byte("\xa4abc")), messages.Invalid, "announces"},
		"trailing byte":          {[]byte("\x90\x00"), messages.Invalid, "more bytes after the end"},
		"two values":             {[]byte("\x90\x90"), messages.Invalid, "more bytes after the end"},
		"too many fields":        {append([]byte{0x9a}, make([]byte, 10)...), messages.Invalid, "10 fields"},
		"a map for a struct":     {[]byte("\x81\xa1i\x01"), messages.Invalid, "is a map"},
		"nil for a struct":       {[]byte("\xc0"), messages.Invalid, "is nil"},
		"a number for a struct":  {[]byte("\xcc\x05"), messages.Invalid, "a number"},
		"never-used code":        {[]byte("\x91\xc1"), messages.Invalid, "0xc1"},
		"extension":              {[]byte("\x91\xd4\x01\x02"), messages.Invalid, "0xd4"},
		"timestamp extension":    {[]byte("\x91\xd6\xff\x00\x00\x00\x00"), messages.Invalid, "0xd6"},
		"i8 of 128":              {at(0, []byte("\xcc\x80")), messages.Invalid, "i8: 128"},
		"i8 of -129":             {at(0, []byte("\xd1\xff\x7f")), messages.Invalid, "i8: -129"},
		"u32 of -1":              {at(1, []byte("\xff")), messages.Invalid, "u32: -1"},
		"u32 of 2^32":            {at(1, length(0xcf, 8, 1<<32, "")), messages.Invalid, "u32: 4294967296"},
		"i of 2^63":              {at(2, length(0xcf, 8, 1<<63, "")), messages.Invalid, "i: 9223372036854775808"},
		"i of 2^64-1":            {at(2, length(0xcf, 8, math.MaxUint64, "")), messages.Invalid, "i: 18446744073709551615"},
		"i of 1.5":               {at(2, length(0xcb, 8, math.Float64bits(1.5), "")), messages.Invalid, "i: is a number"},
		"i as text":              {at(2, []byte("\xa11")), messages.Invalid, "i: is a string"},
		"f of 1e300":             {at(3, length(0xcb, 8, math.Float64bits(1e300), "")), messages.Invalid, "f: 1e+300"},
		"f of 2^60":              {at(3, length(0xcf, 8, 1<<60, "")), messages.Invalid, "f: the integer"},
		"text for bytes":         {at(5, []byte("\xa1a")), messages.Invalid, "b: is a string"},
		"bytes for text":         {at(4, []byte("\xc4\x01a")), messages.Invalid, "s: is a string"},
		"text for a list":        {at(6, []byte("\xa1a")), messages.Invalid, "l: is a string"},
		"wrong inside a list":    {at(6, []byte("\x92\x90\x91\x01")), messages.Invalid, "l[1].market: is a number"},
		"number for a boolean":   {at(8, []byte("\x01")), messages.Invalid, "o: is a number"},
		"list for an error":      {at(7, []byte("\x91\xa1x")), messages.Invalid, "p.kind"},
		"expands a hundredfold":  {at(6, length(0xdc, 2, 60000, strings.Repeat("\x90", 60000))), messages.TooLarge, "l: has elements without fields"},
		"larger than the limit":  {make([]byte, wire.MaxPayload+1), messages.TooLarge, "limit"},
		"json, deep":             {deep(`[`), messages.Invalid, ""},
		"json, deep objects":     {deep(`{"p":`), messages.Invalid, ""},
		"json, deep in a leaf":   {[]byte(`{"s":` + string(deep(`[`))), messages.Invalid, ""},
		"json, unknown field":    {[]byte(`{"i":1,"x":2}`), messages.Invalid, "x: is no field"},
		"json, other spelling":   {[]byte(`{"I8":1}`), messages.Invalid, "I8: is no field"},
		"json, field twice":      {[]byte(`{"i":1,"i":2}`), messages.Invalid, "i: is given twice"},
		"json, inner field":      {[]byte(`{"l":[{},{"slot":2}]}`), messages.Invalid, "l[1].slot: is no field"},
		"json, i8 of 128":        {[]byte(`{"i8":128}`), messages.Invalid, "i8"},
		"json, fraction":         {[]byte(`{"i":1.5}`), messages.Invalid, "i: "},
		"json, 2^63":             {[]byte(`{"i":9223372036854775808}`), messages.Invalid, "i: "},
		"json, text for number":  {[]byte(`{"i":"1"}`), messages.Invalid, "i: is a string"},
		"json, list for object":  {[]byte(`{"p":[]}`), messages.Invalid, "p: is a list"},
		"json, object for list":  {[]byte(`{"l":{}}`), messages.Invalid, "l: is an object"},
		"json, trailing":         {[]byte(`{} {}`), messages.Invalid, "goes on"},
		"json, trailing bracket": {[]byte(`{}}`), messages.Invalid, "goes on"},
		"json, not UTF-8":        {[]byte("{\"s\":\"\xff\"}"), messages.Invalid, "UTF-8"},
		"json, a scalar":         {[]byte(`7`), messages.Invalid, "must be an object"},
	} {
		got := one{I: 7}
		err := wire.Unmarshal(c.data, wire.Detect(c.data, ""), &got)
		var e *messages.Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.say) {
			t.Errorf("%s: %v, want %v saying %q", name, err, c.kind, c.say)
		}
		if len(e.Message) > 500 || !utf8.ValidString(e.Message) {
			t.Errorf("%s: the error is %d bytes: %q", name, len(e.Message), messages.Clipped(e.Message))
		}
		if !reflect.DeepEqual(got, one{}) {
			t.Errorf("%s: %+v is left", name, got)
		}
	}
}

func TestNumbersBetweenSorts(t *testing.T) {
	type numbers struct {
		A, B float64
		C    float32
		D    uint8
		E    int64
	}
	payload := "\x95\x03\xd1\xff\x00\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a\xd3\x00\x00\x00\x00\x00\x00\x00\xff\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"
	var got numbers
	if err := wire.Unmarshal([]byte(payload), wire.Msgpack, &got); err != nil {
		t.Fatal(err)
	}
	if want := (numbers{3, -256, 0.1, 255, math.MaxInt64}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNothingIsTheZeroValueInJSON(t *testing.T) {
	got := job.JobsRequest{All: true}
	if err := wire.Unmarshal(nil, wire.Detect(nil, ""), &got); err != nil || got.All || wire.Detect(nil, "") != wire.JSON {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		data, header string
		want         wire.Format
	}{
		{"{}", "", wire.JSON}, {"[1]", "", wire.JSON}, {" \n{}", "", wire.JSON}, {"\x90", "", wire.Msgpack}, {"\xdc\x00\x10", "", wire.Msgpack},
		{"\x90", "application/json", wire.JSON}, {"{}", "Application/JSON; charset=utf-8", wire.JSON}, {"{}", "application/msgpack", wire.Msgpack},
		{"{}", "text/plain", wire.JSON},
	} {
		if got := wire.Detect([]byte(c.data), c.header); got != c.want {
			t.Errorf("%q with %q: got %v", c.data, c.header, got)
		}
	}
}

func TestJSONHasListsAndFlatEmbedding(t *testing.T) {
	data, err := wire.Marshal(job.JobDetail{JobSummary: job.JobSummary{Job: 7, Budget: 12_500_000}}, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"job":7,"name":"","account":"","payer":"","market":"","state":"Waiting","reason":"","budget":12.5,"charged":0,` +
		`"tasks":0,"running":0,"done":0,"submitted":null,"started":null,"ended":null,"exit_code":0,` +
		`"spec":{"budget":0,"stages":[]},"stages":[],"shares":[]}`
	if string(data) != want {
		t.Errorf("got %s", data)
	}
	spec := job.JobSpec{Env: job.Env{{Name: "A", Value: "<&>"}}, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}, {Class: "gpu", Weight: 2.5}}}}
	if data, err = wire.Marshal(&spec, wire.JSON); err != nil {
		t.Fatal(err)
	}
	if want := `{"budget":0,"utility":{"weights":{"cpu":1,"gpu":2.5}},"stages":[],"env":{"A":"<&>"}}`; string(data) != want {
		t.Errorf("got %s", data)
	}
	if spec.Stages != nil {
		t.Error("Marshal changed its argument")
	}
}

func TestTypesWithoutEncodingAreDefects(t *testing.T) {
	type tree struct{ Children []tree }
	for _, v := range []any{nil, (*agent.Exchange)(nil), map[string]int{}, tree{}, struct{ X any }{}, struct{ X **int }{}, make(chan int), func() {}} {
		if _, err := wire.Marshal(v, wire.Msgpack); messages.KindOf(err) != messages.Internal || err == nil {
			t.Errorf("%T: %v", v, err)
		}
	}
	if err := wire.Unmarshal([]byte("\x90"), wire.Msgpack, agent.Exchange{}); err == nil {
		t.Error("decoded into a value that is no pointer")
	}
}

func TestTooLargeToSend(t *testing.T) {
	for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
		if _, err := wire.Marshal(agent.LogsReply{Data: make([]byte, wire.MaxPayload)}, f); messages.KindOf(err) != messages.TooLarge {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// Each hostile payload must allocate at most a small multiple of its size.
func TestAllocationIsBounded(t *testing.T) {
	const n = 1 << 20
	list := string(length(0xdd, 4, n, strings.Repeat("\x90", n)))
	for name, c := range map[string]struct {
		payload string
		into    any
	}{
		"finished":  {"\x93\x00\x00" + list, new(agent.Exchange)},
		"announces": {"\x94\x00\x00\x90" + list, new(agent.Exchange)},
		"json":      {`{"jobs":[` + strings.Repeat("{},", n/3) + `{}]}`, new(job.JobsReply)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := wire.Unmarshal([]byte(c.payload), wire.Detect([]byte(c.payload), ""), c.into)
		runtime.ReadMemStats(&after)
		if messages.KindOf(err) != messages.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 200*uint64(len(c.payload)) {
			t.Errorf("%s: %d bytes allocated for a payload of %d", name, allocated, len(c.payload))
		}
	}
}

// Many payloads with one decoder must give the results and errors of Unmarshal, whatever was decoded before.
func TestDecoder(t *testing.T) {
	var d wire.Decoder
	long := sampleExchange()
	for range 40 {
		long.Finished = append(long.Finished, agent.Finished{Attempt: messages.Attempt{Number: uint32(len(long.Finished))}, Detail: strings.Repeat("x", len(long.Finished))})
	}
	payloads := [][]byte{nil, {0x90}, {0x90, 0}, {0x91, 0xa1, 'x'}}
	for _, x := range []agent.Exchange{sampleExchange(), long, {}, {Session: 7, Claims: []agent.Claim{{Job: 3}}}} {
		data, err := wire.Marshal(&x, wire.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, data)
	}
	var got agent.Exchange
	for i := range 60 {
		data := payloads[i*i%len(payloads)]
		var want agent.Exchange
		refused := wire.Unmarshal(data, wire.Msgpack, &want)
		if err := d.Decode(data, &got); fmt.Sprint(err) != fmt.Sprint(refused) || !reflect.DeepEqual(got, want) {
			t.Fatalf("payload %d: %v, want %v: %+v, want %+v", i*i%len(payloads), err, refused, got, want)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	x := sampleExchange()
	data, err := wire.Marshal(&x, wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	text, err := wire.Marshal(&x, wire.JSON)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			wire.Marshal(&x, wire.Msgpack)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			var y agent.Exchange
			if err := wire.Unmarshal(data, wire.Msgpack, &y); err != nil {
				b.Fatal(err)
			}
		}
	})
	var asMap bytes.Buffer
	if err := msgpack.NewEncoder(&asMap).Encode(&x); err != nil {
		b.Fatal(err)
	}
	b.Run("library-decode", func(b *testing.B) { // the library's own encoding: for arrays it needs a tag in each struct
		b.ReportAllocs()
		for b.Loop() {
			var y agent.Exchange
			if err := msgpack.Unmarshal(asMap.Bytes(), &y); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json-encode", func(b *testing.B) {
		for b.Loop() {
			wire.Marshal(&x, wire.JSON)
		}
	})
	b.Run("json-decode", func(b *testing.B) {
		for b.Loop() {
			var y agent.Exchange
			if err := wire.Unmarshal(text, wire.JSON, &y); err != nil {
				b.Fatal(err)
			}
		}
	})
}
