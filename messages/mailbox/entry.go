package mailbox

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// A log entry is one byte for the version, and then each command: its length as a uvarint, and its bytes. An entry of
// version 2 has no commands, and makes replicas compare their states.
const (
	entryVersion = 1
	entryMark    = 2
	// maxEntryCommands bounds the memory that decodeEntry allocates for empty commands.
	maxEntryCommands = 1 << 16
)

var (
	errEntryVersion = errors.New("mailbox: log entry of an unknown version")
	errEntryLength  = errors.New("mailbox: log entry claims a length it does not have")
	errEntryCount   = errors.New("mailbox: log entry holds too many commands")
)

// newEntry starts an entry with room for size bytes of commands.
func newEntry(size int) []byte { return append(make([]byte, 0, size+1), entryVersion) }

func appendCommand(entry, command []byte) []byte {
	return append(binary.AppendUvarint(entry, uint64(len(command))), command...)
}

func framed(n int) int { return n + (bits.Len64(uint64(n)|1)+6)/7 }

// decodeEntry splits an entry into its commands. The commands use the memory of the entry. If the entry is malformed,
// decodeEntry returns an error.
func decodeEntry(entry []byte) ([][]byte, error) {
	if len(entry) == 0 || entry[0] != entryVersion {
		return nil, errEntryVersion
	}
	var commands [][]byte
	for rest := entry[1:]; len(rest) > 0; {
		length, k := binary.Uvarint(rest)
		if k <= 0 || length > uint64(len(rest)-k) {
			return nil, errEntryLength
		}
		if len(commands) == maxEntryCommands {
			return nil, errEntryCount
		}
		end := k + int(length)
		commands = append(commands, rest[k:end:end])
		rest = rest[end:]
	}
	return commands, nil
}
