package proof

import (
	"encoding/binary"

	"github.com/candor-grid/candor/messages/money"
)

// These are bits of the second byte of an encoded transfer.
const (
	HasLink    = 1 << iota // the transfer is linked
	HasTimeout             // the transfer has a time-out
)

// AppendTransfer appends the canonical encoding of a transfer. The mark of a transfer, which proves who asked for it,
// is computed from this encoding. The bank also uses it in commands and records.
func AppendTransfer(b []byte, t *money.Transfer) []byte {
	var has byte
	if t.Linked {
		has |= HasLink
	}
	if t.Timeout != 0 {
		has |= HasTimeout
	}
	b = append(b, byte(t.Kind), has)
	b = text(b, t.ID)
	b = text(b, t.Debit)
	b = text(b, t.Credit)
	b = binary.AppendVarint(b, int64(t.Amount))
	b = text(b, t.Pending)
	b = binary.AppendVarint(b, int64(t.Expires))
	b = text(b, t.Member)
	b = binary.AppendUvarint(b, uint64(t.Job))
	b = text(b, t.Reason)
	if t.Timeout != 0 {
		b = binary.AppendVarint(b, int64(t.Timeout))
	}
	return b
}

func text(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
