package wire

import (
	"github.com/candor-grid/candor/messages"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxDepth bounds how deep arrays may nest in a payload. Our types need less than ten levels.
const maxDepth = 32

// class is a kind of value. The first byte of a value determines its class.
type class uint8

const (
	refused class = iota // never used, or the beginning of an extension type
	scalar               // width bytes follow
	text                 // a length of width bytes and that number of bytes follow
	array                // a count of width bytes and that number of values follow
	table                // a count of width bytes and twice that number of values follow
)

// A code says what the first byte of a value means: the kind of the value, and where its count is. If the field `width`
// is 0, the first byte contains the count. Otherwise the count is in the next `width` bytes.
type code struct {
	class class
	width uint8
	count uint8
}

var codes = makeCodes()

func makeCodes() (c [256]code) {
	for i := range 0x80 {
		c[i] = code{class: scalar}
		c[0x80|i&0x0f] = code{class: table, count: uint8(i & 0x0f)}
		c[0x90|i&0x0f] = code{class: array, count: uint8(i & 0x0f)}
		c[0xa0|i&0x1f] = code{class: text, count: uint8(i & 0x1f)}
		c[0xe0|i&0x1f] = code{class: scalar}
	}
	c[msgpcode.Nil], c[msgpcode.False], c[msgpcode.True] = code{class: scalar}, code{class: scalar}, code{class: scalar}
	for i := range 4 {
		width := uint8(1) << i
		c[msgpcode.Uint8+byte(i)] = code{class: scalar, width: width}
		c[msgpcode.Int8+byte(i)] = code{class: scalar, width: width}
	}
	c[msgpcode.Float], c[msgpcode.Double] = code{class: scalar, width: 4}, code{class: scalar, width: 8}
	for i := range 3 {
		width := uint8(1) << i
		c[msgpcode.Bin8+byte(i)] = code{class: text, width: width}
		c[msgpcode.Str8+byte(i)] = code{class: text, width: width}
	}
	c[msgpcode.Array16], c[msgpcode.Array32] = code{class: array, width: 2}, code{class: array, width: 4}
	c[msgpcode.Map16], c[msgpcode.Map32] = code{class: table, width: 2}, code{class: table, width: 4}
	return c
}

// scan checks that data is exactly one well-formed value. The value must not be nested deeper than maxDepth. Its counts
// and lengths must fit into the remaining bytes. It must have no extension types. scan allocates no memory. A reader of
// checked data needs no further checks of lengths.
func scan(data []byte) error {
	var open [maxDepth + 1]int // values still to come at each depth
	depth, at := 0, 0
	open[0] = 1
	for {
		for open[depth] == 0 {
			if depth == 0 {
				return scanEnd(data, at)
			}
			depth--
		}
		open[depth]--
		if at >= len(data) {
			return cut(len(data))
		}
		c := &codes[data[at]]
		at++
		if int(c.width) > len(data)-at {
			return cut(len(data))
		}
		if c.class == scalar {
			at += int(c.width)
			continue
		}
		count := c.counted(data[at:])
		at += int(c.width)
		remain := len(data) - at
		switch c.class {
		case text:
			if count > remain {
				return short("a string of", count, "bytes", remain, at)
			}
			at += count
		case array, table:
			if c.class == table {
				count *= 2
			}
			if count > remain {
				return short("a list of", count, "values", remain, at)
			}
			if depth++; depth > maxDepth {
				return messages.Errorf(messages.Invalid, "payload nests deeper than %d levels at byte %d", maxDepth, at)
			}
			open[depth] = count
		default:
			return messages.Errorf(messages.Invalid, "payload has the code 0x%02x at byte %d: extension types are not used here", data[at-1], at-1)
		}
	}
}

// counted returns the count of a value. The count is in the first byte of the value, or in the bytes after it.
func (c *code) counted(after []byte) int {
	count := int(c.count)
	for _, b := range after[:c.width] {
		count = count<<8 | int(b)
	}
	return count
}

func scanEnd(data []byte, at int) error {
	if at != len(data) {
		return messages.Errorf(messages.Invalid, "payload has %d more bytes after the end of its value at byte %d; send one value", len(data)-at, at)
	}
	return nil
}

func cut(length int) error {
	return messages.Errorf(messages.Invalid, "payload was cut: it ends at byte %d, in the middle of a value", length)
}

func short(what string, count int, unit string, remain, at int) error {
	return messages.Errorf(messages.Invalid, "payload is cut off or damaged: it announces %s %d %s at byte %d, but only %d bytes remain", what, count, unit, at, remain)
}
