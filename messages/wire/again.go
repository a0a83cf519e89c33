package wire

import "reflect"

// Decoder decodes msgpack payloads, one after the other, into the same memory. It is for readers that read very many
// records, and are done with each record before they read the next one. Its zero value is ready.
type Decoder struct {
	parts map[reflect.Type]*parts
}

type parts struct {
	all  []reflect.Value // values of one type, which the decoder fills again for each payload
	used int             // number of values in `all` that the present payload uses
}

// Decode is [Unmarshal], but reuses memory. Texts and byte strings in the value share the memory of the slice `data`.
// Lists, and values behind pointers, are valid until the next call, if nobody changes `data`.
func (d *Decoder) Decode(data []byte, v any) error {
	for _, p := range d.parts {
		p.used = 0
	}
	_, err := unmarshal(data, Msgpack, v, &reader{again: d})
	return err
}

// next returns an empty value of a type. It takes the value from the decoder's memory, and never returns the same value
// twice for one payload.
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
