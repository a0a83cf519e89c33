package karma

import (
	"encoding/binary"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// The market's note has these numbers: its form, the number of classes, and for each class the start of its quantum and
// the number of its members. Then the note has numbers for each member: the length of the member's name in bytes, the
// name in words of eight bytes, the member's karma, and the time when it last had a job.
const (
	noteForm    = 1
	mostMembers = 8000 // largest number of members in a note, over all classes
)

// Notes implements mechanism.Remembering.
func (k *Mechanism) Notes(int) ([]mechanism.Note, bool) {
	if !k.changed {
		return nil, false
	}
	out := []int64{noteForm, int64(len(k.ledgers))}
	for _, l := range k.ledgers {
		members := l.Members[:min(len(l.Members), mostMembers/len(k.ledgers))]
		out = append(out, int64(l.since), int64(len(members)))
		for _, m := range members {
			out = append(out, int64(len(m.Name)))
			for at := 0; at < len(m.Name); at += 8 {
				var word [8]byte
				copy(word[:], m.Name[at:])
				out = append(out, int64(binary.BigEndian.Uint64(word[:])))
			}
			out = append(out, m.Karma, int64(m.seen))
		}
	}
	return []mechanism.Note{{Numbers: out}}, false
}

// Saved implements mechanism.Remembering.
func (k *Mechanism) Saved() bool {
	k.changed = false
	return false
}

// Recall implements mechanism.Remembering. It ignores a note that was made when the market had another number of
// classes.
func (k *Mechanism) Recall(notes []mechanism.Note, _ []messages.JobID, _ func(messages.JobID) mechanism.Past) {
	if len(notes) == 0 || notes[0].Job != 0 {
		return
	}
	r := reader{left: notes[0].Numbers}
	if r.next() != noteForm || r.next() != int64(len(k.ledgers)) {
		return
	}
	recalled := make([]*Ledger, len(k.ledgers))
	for j, l := range k.ledgers {
		l := &Ledger{Alpha: l.Alpha, Quantum: l.Quantum, since: messages.Time(r.next())}
		for range r.upTo(mostMembers) {
			l.Members = append(l.Members, &Member{Name: r.name(), Karma: r.next(), seen: messages.Time(r.next())})
		}
		recalled[j] = l
	}
	if !r.short {
		k.ledgers = recalled
	}
}

// reader reads numbers one by one, and remembers if there were too few.
type reader struct {
	left  []int64
	short bool
}

func (r *reader) next() int64 {
	if len(r.left) == 0 {
		r.short = true
		return 0
	}
	n := r.left[0]
	r.left = r.left[1:]
	return n
}

// upTo reads a count. If the count is larger than the argument `most`, the whole note is invalid.
func (r *reader) upTo(most int64) int64 {
	n := r.next()
	if n < 0 || n > most {
		r.short = true
		return 0
	}
	return n
}

func (r *reader) name() messages.Name {
	length := r.upTo(1024)
	var bytes []byte
	for at := int64(0); at < length; at += 8 {
		bytes = binary.BigEndian.AppendUint64(bytes, uint64(r.next()))
	}
	return messages.Name(bytes[:length])
}
