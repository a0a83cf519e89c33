package terminal

import "bytes"

// Key is a key that was pressed: a letter as itself, or one of the constants.
type Key rune

// The keys that a terminal names with several bytes, or with one that is no letter.
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
	Resize // the terminal has another size
)

// sequences are what follows Escape for the keys that are known.
var sequences = map[string]Key{
	"[A": Up, "OA": Up, "[B": Down, "OB": Down, "[5~": PageUp, "[6~": PageDown,
	"[H": Home, "OH": Home, "[1~": Home, "[7~": Home, "[F": End, "OF": End, "[4~": End, "[8~": End,
}

// longest is the longest sequence to wait for; a longer one is not a key.
const longest = 32

// Keys turns the bytes that a terminal sends, in pieces of any size, into keys.
type Keys struct{ open []byte } // a sequence that has begun

// Feed takes bytes and returns the keys that are whole. Sequences that are not known
// are no keys.
func (k *Keys) Feed(input []byte) (keys []Key) {
	for _, b := range input {
		if len(k.open) == 0 && b != byte(Escape) {
			keys = append(keys, Key(b))
			continue
		}
		if len(k.open) == 1 && b == byte(Escape) { // pressed twice
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

// Waiting reports whether a sequence has begun that is not whole.
func (k *Keys) Waiting() bool { return len(k.open) > 0 }

// Flush ends a sequence after which nothing came: Escape alone is the key itself.
func (k *Keys) Flush() (keys []Key) {
	if len(k.open) == 1 {
		keys = []Key{Escape}
	}
	k.open = nil
	return keys
}

// whole reports whether no byte more belongs to the open sequence: a control sequence
// ends with a byte from @ to ~, any other is two bytes long.
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
