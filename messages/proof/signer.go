package proof

// Signer is a key with its public part; an nkeys.KeyPair is one.
type Signer interface {
	Sign(data []byte) ([]byte, error)
	PublicKey() (string, error)
}
