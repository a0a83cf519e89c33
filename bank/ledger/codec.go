package ledger

import (
	"encoding/binary"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// writer appends the one encoding that commands, records and images share:
// unsigned and zigzag varints, and texts behind their length. A value has one
// encoding only, so that equal states have equal bytes.
type writer struct{ b []byte }

func (w *writer) byte(v byte)   { w.b = append(w.b, v) }
func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }

func (w *writer) flag(v bool) {
	if v {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) transfer(t *messages.Transfer) { w.b = proof.AppendTransfer(w.b, t) }

// reader reads what writer wrote. The first thing that does not fit sets bad,
// after which everything reads as zero. Texts share the memory of s.
type reader struct {
	s       string
	bad     bool
	version byte // of the command that is read
}

func (r *reader) fail() { r.s, r.bad = "", true }

func (r *reader) byte() byte {
	if r.s == "" {
		r.fail()
		return 0
	}
	v := r.s[0]
	r.s = r.s[1:]
	return v
}

func (r *reader) flag() bool {
	v := r.byte()
	if v > 1 {
		r.fail()
	}
	return v == 1
}

func (r *reader) uint() uint64 {
	var v uint64
	for i := 0; i < len(r.s) && i < binary.MaxVarintLen64; i++ {
		c := r.s[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break // more than 64 bits
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.s = r.s[i+1:]
			return v
		}
	}
	r.fail()
	return 0
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) text() string {
	n := r.uint()
	if n > uint64(len(r.s)) {
		r.fail()
		return ""
	}
	v := r.s[:n]
	r.s = r.s[n:]
	return v
}

func (r *reader) transfer(t *messages.Transfer) {
	t.Kind = messages.TransferKind(r.byte())
	has := r.byte()
	t.Linked = has&proof.HasLink != 0
	t.ID = r.text()
	t.Debit = r.text()
	t.Credit = r.text()
	t.Amount = messages.Credits(r.int())
	t.Pending = r.text()
	t.Expires = messages.Time(r.int())
	t.Member = r.text()
	t.Job = messages.JobID(r.uint())
	t.Reason = r.text()
	t.Timeout = 0
	if has&proof.HasTimeout != 0 {
		t.Timeout = messages.Duration(r.int())
	}
	if has&^(proof.HasLink|proof.HasTimeout) != 0 || (has&proof.HasTimeout != 0) != (t.Timeout != 0) {
		r.fail()
	}
}

// ok reports whether everything was read well and nothing is left.
func (r *reader) ok() bool { return !r.bad && r.s == "" }
