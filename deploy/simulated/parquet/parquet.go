// Package parquet writes tables of numbers and words as Apache Parquet files,
// for whoever analyses a study elsewhere: every column required, plain and
// uncompressed, in row groups of at most GroupRows rows with one page a column.
// It is the smallest subset of the format that every reader knows.
//
// # Source
//
// The Apache Parquet format, version 2.10: the file layout, and FileMetaData
// and PageHeader in Thrift's compact protocol.
package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// GroupRows is the most rows of a row group.
const GroupRows = 1 << 20

// Column is a named column. Exactly one of the slices is set; all columns of a
// table are as long.
type Column struct {
	Name   string
	Int    []int64
	Double []float64
	Text   []string
}

// Physical types of the format.
const (
	typeInt64     = 2
	typeDouble    = 5
	typeByteArray = 6
)

func (c *Column) kind() int64 {
	switch {
	case c.Int != nil:
		return typeInt64
	case c.Double != nil:
		return typeDouble
	}
	return typeByteArray
}

func (c *Column) len() int { return max(len(c.Int), len(c.Double), len(c.Text)) }

// plain encodes some rows.
func (c *Column) plain(from, to int) []byte {
	var b []byte
	switch c.kind() {
	case typeInt64:
		for _, x := range c.Int[from:to] {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	case typeDouble:
		for _, x := range c.Double[from:to] {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	default:
		for _, s := range c.Text[from:to] {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
			b = append(b, s...)
		}
	}
	return b
}

// chunk is where a column of a row group lies.
type chunk struct {
	offset, size, rows int64
}

// Write writes a table.
func Write(w io.Writer, columns []Column) error {
	if len(columns) == 0 {
		return errors.New("parquet: a table needs columns")
	}
	rows := columns[0].len()
	for i := range columns {
		if columns[i].len() != rows {
			return fmt.Errorf("parquet: column %s has %d rows, the first has %d", columns[i].Name, columns[i].len(), rows)
		}
	}
	out := &counter{w: w}
	out.write([]byte("PAR1"))
	var groups [][]chunk
	for from := 0; from < rows; from += GroupRows {
		groups = append(groups, group(out, columns, from, min(from+GroupRows, rows)))
	}
	footer := metadata(columns, rows, groups)
	out.write(footer)
	out.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	out.write([]byte("PAR1"))
	return out.err
}

func group(out *counter, columns []Column, from, to int) []chunk {
	chunks := make([]chunk, len(columns))
	for i := range columns {
		data := columns[i].plain(from, to)
		head := pageHeader(len(data), to-from)
		chunks[i] = chunk{out.n, int64(len(head) + len(data)), int64(to - from)}
		out.write(head)
		out.write(data)
	}
	return chunks
}

// counter counts what is written, and keeps the first error.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
		c.n += int64(len(b))
	}
}

// pageHeader is of a plain data page without levels.
func pageHeader(size, rows int) []byte {
	var t thrift
	t.int32(1, 0) // type: data page
	t.int32(2, int64(size))
	t.int32(3, int64(size))
	t.open(5)
	t.int32(1, int64(rows))
	t.int32(2, 0) // encoding: plain
	t.int32(3, 3) // levels: run lengths, of which there are none
	t.int32(4, 3)
	t.close()
	t.close()
	return t.Bytes()
}

// metadata is the footer.
func metadata(columns []Column, rows int, groups [][]chunk) []byte {
	var t thrift
	t.int32(1, 2) // version
	t.list(2, structs, len(columns)+1)
	t.element()
	t.text(4, "table")
	t.int32(5, int64(len(columns)))
	t.close()
	for i := range columns {
		t.element()
		t.int32(1, columns[i].kind())
		t.int32(3, 0) // required
		t.text(4, columns[i].Name)
		if columns[i].kind() == typeByteArray {
			t.int32(6, 0) // UTF-8
		}
		t.close()
	}
	t.int64(3, int64(rows))
	t.list(4, structs, len(groups))
	for _, g := range groups {
		rowGroup(&t, columns, g)
	}
	t.text(6, "candor")
	t.close()
	return t.Bytes()
}

func rowGroup(t *thrift, columns []Column, chunks []chunk) {
	t.element()
	t.list(1, structs, len(chunks))
	size := int64(0)
	for i, c := range chunks {
		size += c.size
		t.element()
		t.int64(2, c.offset)
		t.open(3)
		t.int32(1, columns[i].kind())
		t.list(2, int32s, 2)
		t.varint(0) // plain
		t.varint(3) // run lengths
		t.list(3, binaries, 1)
		t.bytes(columns[i].Name)
		t.int32(4, 0) // uncompressed
		t.int64(5, c.rows)
		t.int64(6, c.size)
		t.int64(7, c.size)
		t.int64(9, c.offset)
		t.close()
		t.close()
	}
	t.int64(2, size)
	t.int64(3, chunks[0].rows)
	t.close()
}

// thrift writes structs in the compact protocol.
type thrift struct {
	bytes.Buffer
	last  []int64 // of each open struct, the last field written
	field int64   // of the innermost
}

// Types of the compact protocol.
const (
	int32s   = 5
	int64s   = 6
	binaries = 8
	lists    = 9
	structs  = 12
)

func (t *thrift) head(id int64, kind byte) {
	t.WriteByte(byte(id-t.field)<<4 | kind)
	t.field = id
}

func (t *thrift) varint(x int64) {
	t.Write(binary.AppendUvarint(nil, uint64(x<<1^x>>63)))
}

func (t *thrift) int32(id, x int64) { t.head(id, int32s); t.varint(x) }

func (t *thrift) int64(id, x int64) { t.head(id, int64s); t.varint(x) }

func (t *thrift) bytes(s string) {
	t.Write(binary.AppendUvarint(nil, uint64(len(s))))
	t.WriteString(s)
}

func (t *thrift) text(id int64, s string) { t.head(id, binaries); t.bytes(s) }

func (t *thrift) list(id int64, kind byte, n int) {
	t.head(id, lists)
	if n < 15 {
		t.WriteByte(byte(n)<<4 | kind)
		return
	}
	t.WriteByte(0xf0 | kind)
	t.Write(binary.AppendUvarint(nil, uint64(n)))
}

// open begins a struct that is a field, element one that is in a list.
func (t *thrift) open(id int64) { t.head(id, structs); t.element() }

func (t *thrift) element() {
	t.last = append(t.last, t.field)
	t.field = 0
}

// close ends the innermost struct, the outermost at last.
func (t *thrift) close() {
	t.WriteByte(0)
	if n := len(t.last); n > 0 {
		t.field, t.last = t.last[n-1], t.last[:n-1]
	}
}
