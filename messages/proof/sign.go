package proof

import (
	"crypto/sha512"

	"filippo.io/edwards25519"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// Signature signs data with the principal's key (RFC 8032, section 5.1.6). The result is the same as from
// crypto/ed25519. It does not use crypto/ed25519, because that package first builds a table, which takes ten times as
// long as the signature. Most programs here sign only once.
func (p *Principal) Signature(data []byte) ([]byte, error) {
	_, seed, err := nkeys.DecodeSeed([]byte(p.Seed))
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "the seed in the credentials: %v", err)
	}
	expanded := sha512.Sum512(seed)
	secret, err := new(edwards25519.Scalar).SetBytesWithClamping(expanded[:32])
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "signing: %v", err)
	}
	public := timesBase(secret)
	nonce := scalarOf(expanded[32:], data)
	signature := timesBase(nonce)
	challenge := scalarOf(signature, public, data)
	return append(signature, new(edwards25519.Scalar).MultiplyAdd(challenge, secret, nonce).Bytes()...), nil
}

// timesBase returns s times the base point, encoded. It takes constant time.
func timesBase(s *edwards25519.Scalar) []byte {
	return new(edwards25519.Point).ScalarMult(s, edwards25519.NewGeneratorPoint()).Bytes()
}

// scalarOf returns the SHA-512 of some texts as a scalar.
func scalarOf(texts ...[]byte) *edwards25519.Scalar {
	digest := sha512.New()
	for _, text := range texts {
		digest.Write(text)
	}
	s, err := new(edwards25519.Scalar).SetUniformBytes(digest.Sum(nil))
	if err != nil {
		panic(err) // cannot happen: the digest has the right length
	}
	return s
}
