package proof

// Signer is a private key with its public key, for example an nkeys.KeyPair.
type Signer interface {
	Sign(data []byte) ([]byte, error)
	PublicKey() (string, error)
}
