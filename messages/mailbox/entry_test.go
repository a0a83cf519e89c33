package mailbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
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

// garbage has malformed entries, which must be refused as a whole.
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

// After a malformed entry, no entry may be applied, neither in the same batch nor in a later one.
func TestGarbageEntryEndsApplying(t *testing.T) {
	for _, g := range garbage {
		m := newTally()
		a := newApplier(m, zap.NewNop())
		var told []error
		a.unable = func(err error) { told = append(told, err) }
		command := func(i int, data []byte) *raft.Log {
			return &raft.Log{Index: uint64(i), Type: raft.LogCommand, Data: data}
		}
		responses := a.ApplyBatch([]*raft.Log{command(1, entryOf([]byte("before"))), command(2, g.entry), command(3, entryOf([]byte("after")))})
		responses = append(responses, a.Apply(command(4, entryOf([]byte("later")))))
		for i, r := range responses {
			if err, bad := r.(error); bad != (i > 0) || bad && !errors.Is(err, g.err) {
				t.Errorf("%s: entry %d: %v", g.name, i+1, r)
			}
		}
		if total, _ := m.state(); total != 1 || len(told) != 1 || !strings.Contains(told[0].Error(), "entry 2 is committed, but this build cannot apply it") {
			t.Errorf("%s: %d commands reached the machine, told %v", g.name, total, told)
		}
		if _, err := a.Snapshot(); err == nil {
			t.Errorf("%s: a snapshot was taken after it", g.name)
		}
	}
}

// For any bytes, decodeEntry must not panic. It must return only commands that are in the entry. It must accept every
// entry that appendCommand makes.
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
