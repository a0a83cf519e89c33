package terminal

import "bytes"

// Key is a key that was pressed: the letter itself, or one of the constants.
type Key rune

// For these keys, a terminal sends several bytes, or one unprintable byte.
const (
	Interrupt Key = 0x03 // Ctrl-C
	Redraw    Key = 0x0c // Ctrl-L
	Escape    Key = 0x1b
	Up        Key = -iota
	Down
	PageUp
	PageDown
	Home
	End
	Resize // no key: the size of the terminal has changed
)

var sequences = map[string]Key{
	"[A": Up, "OA": Up, "[B": Down, "OB": Down, "[5~": PageUp, "[6~": PageDown,
	"[H": Home, "OH": Home, "[1~": Home, "[7~": Home, "[F": End, "OF": End, "[4~": End, "[8~": End,
}

// longest is the largest number of bytes in the sequence of a key. A longer sequence is not a key.
const longest = 32

// Keys translates the bytes from a terminal into keys. The bytes may arrive in pieces of any size.
type Keys struct{ open []byte } // the beginning of a sequence

// Feed takes bytes and returns the complete keys. It drops unknown sequences.
func (k *Keys) Feed(input []byte) (keys []Key) {
	for _, b := range input {
		if len(k.open) == 0 && b != byte(Escape) {
			keys = append(keys, Key(b))
			continue
		}
		if len(k.open) == 1 && b == byte(Escape) { // Escape was pressed twice
			keys = append(keys, Escape)
			continue
		}
		k.open = append(k.open, b)
		if !k.whole() {
			continue
		}
		if key, known := sequences[string(k.open[1:])]; known {
			keys = append(keys, key)
		}
		k.open = nil
	}
	return keys
}

// Waiting reports whether a sequence has begun and is not complete.
func (k *Keys) Waiting() bool { return len(k.open) > 0 }

// Flush ends an incomplete sequence, because no more bytes have come. A single Escape byte is the key Escape.
func (k *Keys) Flush() (keys []Key) {
	if len(k.open) == 1 {
		keys = []Key{Escape}
	}
	k.open = nil
	return keys
}

// This method reports whether the sequence is complete. A control sequence ends with a byte from @ to ~. Any other
// sequence has two bytes.
func (k *Keys) whole() bool {
	s := k.open
	last := s[len(s)-1]
	switch {
	case len(s) < 2:
		return false
	case len(s) > longest:
		return true
	case bytes.HasPrefix(s, []byte("\x1b[")):
		return len(s) > 2 && last >= '@' && last <= '~'
	case s[1] == 'O':
		return len(s) > 2
	}
	return true
}
