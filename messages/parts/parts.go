// Package parts writes and reads images that consist of parts. Each part is a value in canonical msgpack, after its
// length in four bytes. The SHA-256 of all parts follows the last part, so other data may follow an image.
package parts

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/candor-grid/candor/messages/wire"
)

// ErrDamaged is in the errors for a damaged image.
var ErrDamaged = errors.New("the image is damaged")

// WriteHashed calls the function `body`, which writes its output to w, and then writes the SHA-256 of this output. It
// returns the number of bytes written.
func WriteHashed(w io.Writer, body func(io.Writer) error) (int64, error) {
	out := &counter{w: w}
	buffered := bufio.NewWriterSize(out, 1<<16)
	h := sha256.New()
	err := body(io.MultiWriter(buffered, h))
	if err == nil {
		_, err = buffered.Write(h.Sum(nil))
	}
	if err == nil {
		err = buffered.Flush()
	}
	return out.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// ReadHashed calls the function `body`, which reads from r. Then it reads a SHA-256, and checks that it is the hash of
// what `body` has read.
func ReadHashed(r io.Reader, body func(io.Reader) error) error {
	h := sha256.New()
	if err := body(io.TeeReader(r, h)); err != nil {
		return err
	}
	var digest [sha256.Size]byte
	if _, err := io.ReadFull(r, digest[:]); err != nil {
		return fmt.Errorf("%w: it ends within its digest", ErrDamaged)
	}
	if !bytes.Equal(digest[:], h.Sum(nil)) {
		return fmt.Errorf("%w: its digest does not match", ErrDamaged)
	}
	return nil
}

// Write writes each value of a list as a part.
func Write[T any](w io.Writer, list ...T) error {
	for i := range list {
		body, err := wire.Marshal(&list[i], wire.Msgpack)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
			return err
		}
	}
	return nil
}

// Read reads n parts, and calls the argument `each` with every value.
func Read[T any](r io.Reader, n int, each func(*T)) error {
	for range n {
		var v T
		if err := read(r, &v); err != nil {
			return err
		}
		each(&v)
	}
	return nil
}

func read(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return fmt.Errorf("%w: it ends too early", ErrDamaged)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > wire.MaxPayload {
		return fmt.Errorf("%w: a part has %d bytes", ErrDamaged, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("%w: it ends too early", ErrDamaged)
	}
	if err := wire.Unmarshal(body, wire.Msgpack, v); err != nil {
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	return nil
}
