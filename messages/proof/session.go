package proof

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"hash"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// MarkSize is the number of bytes in a transfer's mark.
const MarkSize = 16

// Mark proves that the holder of a session asked for one transfer.
type Mark [MarkSize]byte

// Marker makes and checks the marks of a session. It is not safe for concurrent use.
type Marker struct {
	mac     hash.Hash
	scratch [sha256.Size]byte
	text    []byte
}

// NewExchangeKey reads the public key of a session.
func NewExchangeKey(public []byte) (*ecdh.PublicKey, error) {
	key, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "key of a session: is not an X25519 key of 32 bytes")
	}
	return key, nil
}

// Agree returns the secret that the session's key and the bank's key share. Each side passes its private key and the
// other side's public key.
func Agree(site messages.Name, own *ecdh.PrivateKey, other, session, bank []byte) ([]byte, error) {
	public, err := NewExchangeKey(other)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "key of a session: is of low order")
	}
	return hkdf.Key(sha256.New, shared, append(append([]byte{}, session...), bank...), "candor session 1 "+site, sha256.Size)
}

// NewMarker returns the marker for a session's secret.
func NewMarker(secret []byte) *Marker { return &Marker{mac: hmac.New(sha256.New, secret)} }

// Bytes returns the mark of an encoded transfer. If the transfer is not the first of its chain, `before` is the mark of
// the transfer before it. The new mark is computed from both, so it also proves the earlier transfers of the chain. For
// the first transfer, `before` is nil.
func (m *Marker) Bytes(before *Mark, transfer []byte) (mark Mark) {
	m.mac.Reset()
	if before != nil {
		m.scratch[0] = 1
		copy(m.scratch[1:], before[:])
		m.mac.Write(m.scratch[:1+MarkSize])
	} else {
		m.scratch[0] = 0
		m.mac.Write(m.scratch[:1])
	}
	m.mac.Write(transfer)
	copy(mark[:], m.mac.Sum(m.scratch[:0]))
	return mark
}

// Transfers returns the marks of a request's transfers, one after the other. A mark proves who made the transfer.
func (m *Marker) Transfers(list []money.Transfer) []byte {
	marks := make([]byte, 0, MarkSize*len(list))
	var before *Mark
	for i := range list {
		m.text = AppendTransfer(m.text[:0], &list[i])
		mark := m.Bytes(before, m.text)
		marks = append(marks, mark[:]...)
		before = nil
		if list[i].Linked {
			before = &mark
		}
	}
	return marks
}

// Equal compares two marks in constant time.
func Equal(a, b Mark) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }
