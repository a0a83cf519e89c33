package mailbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

func entryOf(commands ...[]byte) []byte {
	entry := newEntry(0)
	for _, c := range commands {
		entry = appendCommand(entry, c)
	}
	return entry
}

func TestEntryHoldsCommandsInOrder(t *testing.T) {
	commands := [][]byte{[]byte("a"), {}, bytes.Repeat([]byte("b"), 127), bytes.Repeat([]byte("c"), 128), make([]byte, 1<<14)}
	size := 1
	for _, c := range commands {
		size += framed(len(c))
	}
	entry := entryOf(commands...)
	if len(entry) != size {
		t.Errorf("framed says %d bytes, the entry has %d", size, len(entry))
	}
	decoded, err := decodeEntry(entry)
	if err != nil || len(decoded) != len(commands) {
		t.Fatalf("decoded %d commands, %v", len(decoded), err)
	}
	for i := range commands {
		if !bytes.Equal(decoded[i], commands[i]) {
			t.Errorf("command %d is %q", i, decoded[i])
		}
	}
}

// garbage is entries that must be refused whole.
var garbage = []struct {
	name  string
	entry []byte
	err   error
}{
	{"empty", nil, errEntryVersion},
	{"another version", []byte{entryVersion + 1, 1, 'a'}, errEntryVersion},
	{"cut in a command", []byte{entryVersion, 2, 'a'}, errEntryLength},
	{"cut in a length", []byte{entryVersion, 0x80}, errEntryLength},
	{"good, then cut", []byte{entryVersion, 1, 'a', 5, 'b'}, errEntryLength},
	{"length of all ones", binary.AppendUvarint([]byte{entryVersion}, math.MaxUint64), errEntryLength},
	{"length beyond 64 bits", append([]byte{entryVersion}, bytes.Repeat([]byte{0xff}, 11)...), errEntryLength},
	{"too many", append([]byte{entryVersion}, make([]byte, maxEntryCommands+1)...), errEntryCount},
}

func TestGarbageEntryIsRefusedWhole(t *testing.T) {
	for _, g := range garbage {
		if commands, err := decodeEntry(g.entry); !errors.Is(err, g.err) || commands != nil {
			t.Errorf("%s: %q, %v; want %v", g.name, commands, err, g.err)
		}
	}
}

func TestGarbageEntryIsSkippedByTheMachine(t *testing.T) {
	m := newTally()
	a := newApplier(m, zap.NewNop())
	for i, g := range garbage {
		l := &raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: g.entry}
		if err, ok := a.Apply(l).(error); !ok || !errors.Is(err, g.err) {
			t.Errorf("%s: applied with %v", g.name, err)
		}
	}
	if total, _ := m.state(); total != 0 || a.garbage.Load() != uint64(len(garbage)) {
		t.Errorf("%d commands reached the machine, %d entries counted as garbage", total, a.garbage.Load())
	}
	if a.index.Load() != uint64(len(garbage)) {
		t.Errorf("applied up to %d", a.index.Load())
	}
}

// FuzzDecodeEntry checks that decoding never panics, invents nothing, and
// accepts everything appendCommand makes.
func FuzzDecodeEntry(f *testing.F) {
	f.Add(entryOf([]byte("one"), nil, []byte("three")))
	for _, g := range garbage {
		f.Add(g.entry)
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		commands, err := decodeEntry(entry)
		if err != nil {
			return
		}
		size := 1
		for _, c := range commands {
			size += framed(len(c))
		}
		if size > len(entry) {
			t.Fatalf("%d bytes decoded from %d", size, len(entry))
		}
		again, err := decodeEntry(entryOf(commands...))
		if err != nil || len(again) != len(commands) {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		for i := range commands {
			if !bytes.Equal(again[i], commands[i]) {
				t.Fatalf("command %d differs", i)
			}
		}
	})
}
