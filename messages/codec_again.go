package messages

import "reflect"

// Decoder decodes one msgpack payload after another into the same memory, for a reader of a
// million records that looks at each for a moment. Its zero value is ready.
type Decoder struct {
	parts map[reflect.Type]*parts
}

// parts are values of a type that payloads were decoded into.
type parts struct {
	all  []reflect.Value // addressable
	used int             // by the present payload
}

// Decode does what [Unmarshal] does, but reuses memory. All texts and byte strings of the value are
// pieces of data. Its lists and the values that it points to belong to the decoder: they are valid
// until the next call, and as long as data does not change.
func (d *Decoder) Decode(data []byte, v any) error {
	for _, p := range d.parts {
		p.used = 0
	}
	return unmarshal(data, Msgpack, v, d)
}

// next returns a value of a type that the present payload does not have yet.
func (d *Decoder) next(t reflect.Type) reflect.Value {
	p := d.parts[t]
	if p == nil {
		if d.parts == nil {
			d.parts = map[reflect.Type]*parts{}
		}
		p = &parts{}
		d.parts[t] = p
	}
	if p.used == len(p.all) {
		p.all = append(p.all, reflect.New(t).Elem())
	}
	p.used++
	return p.all[p.used-1]
}

func (d *Decoder) value(t reflect.Type) reflect.Value {
	v := d.next(t)
	v.SetZero()
	return v
}

func (d *Decoder) list(t reflect.Type, n int) reflect.Value {
	v := d.next(t)
	if v.Cap() < n {
		v.Set(reflect.MakeSlice(t, n, n))
		return v
	}
	v.SetLen(n)
	v.Clear()
	return v
}
