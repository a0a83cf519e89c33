package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/wire"
)

// A signature covers a domain, a zero byte, and the value in canonical msgpack, in which equal values have equal bytes.
// The domain says what the value is. So a signature of one thing is never valid for another.
const (
	domainAuthorisation = "candor clearing authorisation 1"
	domainInstructions  = "candor clearing instructions 1"
	domainReceipt       = "candor clearing receipt 1"
	domainLines         = "candor clearing lines 1"
	domainPosition      = "candor clearing position 1"
	domainTotals        = "candor clearing totals 1"
	domainBook          = "candor clearing book 1"
)

// Signer signs data; an nkeys.KeyPair is one.
type Signer interface {
	Sign(data []byte) ([]byte, error)
}

// Verify reports whether signature is a signature of data by the private key that belongs to the public key. It does
// the same as proof.Verified. The result must depend only on the arguments, because all replicas must get the same
// result.
type Verify func(key string, data, signature []byte) bool

// signed returns the bytes that are signed. It returns nil if the value cannot be encoded. A value that was decoded
// before can always be encoded.
func signed(domain string, value any) []byte {
	body, err := wire.Marshal(value, wire.Msgpack)
	if err != nil {
		return nil
	}
	return append(append([]byte(domain), 0), body...)
}

func sign(k Signer, domain string, value any) ([]byte, error) {
	data := signed(domain, value)
	if data == nil {
		return nil, messages.Errorf(messages.Internal, "%T is too large to be signed", value)
	}
	return k.Sign(data)
}

// SignAuthorisation signs an authorisation, as its issuer.
func SignAuthorisation(k Signer, a clearing.Authorisation) (clearing.SignedAuthorisation, error) {
	signature, err := sign(k, domainAuthorisation, &a)
	return clearing.SignedAuthorisation{Authorisation: a, Signature: signature}, err
}

// SignInstructions signs instructions, as their sender.
func SignInstructions(k Signer, i clearing.Instructions) (clearing.SignedInstructions, error) {
	signature, err := sign(k, domainInstructions, &i)
	return clearing.SignedInstructions{Instructions: i, Signature: signature}, err
}

// SignReceipt signs a receipt, as the receiver of the instructions.
func SignReceipt(k Signer, r clearing.Receipt) (clearing.SignedReceipt, error) {
	signature, err := sign(k, domainReceipt, &r)
	return clearing.SignedReceipt{Receipt: r, Signature: signature}, err
}

// SignLines signs a page of a book.
func SignLines(k Signer, l clearing.Lines) (clearing.SignedLines, error) {
	signature, err := sign(k, domainLines, &l)
	return clearing.SignedLines{Lines: l, Signature: signature}, err
}

// SignTotals signs a bank's totals of its trade with a peer.
func SignTotals(k Signer, t clearing.Totals) (clearing.SignedTotals, error) {
	signature, err := sign(k, domainTotals, &t)
	return clearing.SignedTotals{Totals: t, Signature: signature}, err
}

// SignPosition signs a position in a cycle.
func SignPosition(k Signer, p clearing.Position) (clearing.SignedPosition, error) {
	signature, err := sign(k, domainPosition, &p)
	return clearing.SignedPosition{Position: p, Signature: signature}, err
}

// VerifyPosition reports whether a position was signed with one of the keys.
func VerifyPosition(v Verify, keys []string, p *clearing.SignedPosition) bool {
	return verifyAny(v, keys, domainPosition, &p.Position, p.Signature)
}

func verifyAny(v Verify, keys []string, domain string, value any, signature []byte) bool {
	data := signed(domain, value)
	return data != nil && slices.ContainsFunc(keys, func(key string) bool { return v(key, data, signature) })
}
