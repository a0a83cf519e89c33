package ledger

import (
	"encoding/binary"

	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// codec writes or reads the encoding of commands, records and images: unsigned and zigzag varints, and texts, each with
// its length before it. Each value has exactly one encoding, so equal states have equal bytes. Each structure has one
// method for both directions.
//
// The first error sets the field `bad`. Every read after an error returns zero. A text that was decoded shares the
// memory of the field `s`.
type codec struct {
	b     []byte // the bytes written so far
	s     string // the bytes still to read
	reads bool
	bad   bool
}

// decoder returns a codec that reads a copy of b.
func decoder(b []byte) codec { return codec{s: string(b), reads: true} }

func (c *codec) fail() { c.s, c.bad = "", true }

func (c *codec) ok() bool { return !c.bad && c.s == "" }

func (c *codec) uint(v *uint64) {
	if c.reads {
		*v = c.readUint()
	} else {
		c.b = binary.AppendUvarint(c.b, *v)
	}
}

func (c *codec) readUint() uint64 {
	var v uint64
	for i := 0; i < len(c.s) && i < binary.MaxVarintLen64; i++ {
		b := c.s[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			break // more than 64 bits
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.s = c.s[i+1:]
			return v
		}
	}
	c.fail()
	return 0
}

// number encodes or decodes an amount or a time.
func number[T ~int64](c *codec, v *T) {
	if c.reads {
		u := c.readUint()
		*v = T(u>>1) ^ -T(u&1)
	} else {
		c.b = binary.AppendVarint(c.b, int64(*v))
	}
}

// octet encodes or decodes a value of an enumeration, in one byte.
func octet[T ~uint8](c *codec, v *T) {
	switch {
	case !c.reads:
		c.b = append(c.b, byte(*v))
	case c.s == "":
		c.fail()
	default:
		*v, c.s = T(c.s[0]), c.s[1:]
	}
}

func (c *codec) flag(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	octet(c, &b)
	if c.reads {
		*v = b == 1
	}
	if b > 1 {
		c.fail()
	}
}

func (c *codec) text(v *string) {
	if c.reads {
		*v = c.next(c.readUint())
		return
	}
	c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
	c.b = append(c.b, *v...)
}

func (c *codec) next(n uint64) string {
	if n > uint64(len(c.s)) {
		c.fail()
		return ""
	}
	v := c.s[:n]
	c.s = c.s[n:]
	return v
}

// bytes encodes or decodes a byte slice: its length and then its content.
func (c *codec) bytes(v *[]byte) {
	s := string(*v)
	if c.text(&s); c.reads {
		*v = []byte(s)
	}
}

// raw encodes or decodes exactly len(v) bytes, without a length.
func (c *codec) raw(v []byte) {
	if c.reads {
		copy(v, c.next(uint64(len(v))))
	} else {
		c.b = append(c.b, v...)
	}
}

// count encodes or decodes the number of items that follow. The argument `least` is the smallest possible size of an
// item, in bytes. When it decodes, it fails if the bytes that follow are too few for so many items. So a damaged number
// cannot make the caller allocate too much memory.
func (c *codec) count(n uint64, least int) uint64 {
	if c.uint(&n); c.reads && n > uint64(len(c.s)/least) {
		c.fail()
		return 0
	}
	return n
}

// list encodes or decodes the number of items, and then each item.
func list[T any](c *codec, items *[]T, least int, item func(*codec, *T)) {
	if n := c.count(uint64(len(*items)), least); c.reads && n > 0 {
		*items = make([]T, n)
	}
	for i := range *items {
		item(c, &(*items)[i])
	}
}

func (c *codec) transfer(t *money.Transfer) {
	if !c.reads {
		c.b = proof.AppendTransfer(c.b, t)
		return
	}
	var has byte
	octet(c, &t.Kind)
	octet(c, &has)
	t.Linked = has&proof.HasLink != 0
	c.text(&t.ID)
	c.text(&t.Debit)
	c.text(&t.Credit)
	number(c, &t.Amount)
	c.text(&t.Pending)
	number(c, &t.Expires)
	c.text(&t.Member)
	c.uint((*uint64)(&t.Job))
	c.text(&t.Reason)
	t.Timeout = 0
	if has&proof.HasTimeout != 0 {
		number(c, &t.Timeout)
	}
	if has&^(proof.HasLink|proof.HasTimeout) != 0 || (has&proof.HasTimeout != 0) != (t.Timeout != 0) {
		c.fail()
	}
}
