package proof

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// maxToken is the largest size of a claim in bytes. The claims that sites make have about 700 bytes.
const maxToken = 4 << 10

// Token is the content of a site's signed claim that a key belongs to a name.
type Token struct {
	Key     string        // public key that belongs to the name
	Name    messages.Name // in the form used in subjects
	Issuer  string        // public key that signed the claim
	Account string        // public key of the site's account
	Expires messages.Time // 0 means never
}

// ReadToken reads a claim (a JSON Web Token in NATS's form) and checks that its issuer signed it. The caller must check
// that the issuer may sign.
func ReadToken(text string) (Token, *messages.Error) {
	parts := strings.Split(text, ".")
	if len(text) > maxToken || len(parts) != 3 {
		return Token{}, unreadable()
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var body struct {
		Subject string `json:"sub"`
		Name    string `json:"name"`
		Issuer  string `json:"iss"`
		Expires int64  `json:"exp"`
		Nats    struct {
			Account string `json:"issuer_account"`
			Type    string `json:"type"`
		} `json:"nats"`
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !part(parts[0], &header) || !part(parts[1], &body) {
		return Token{}, unreadable()
	}
	if header.Algorithm != "ed25519-nkey" || body.Nats.Type != "user" || body.Expires < 0 || body.Expires > lastSecond {
		return Token{}, unreadable()
	}
	if !Verified(body.Issuer, []byte(parts[0]+"."+parts[1]), signature) || !nkeys.IsValidPublicUserKey(body.Subject) {
		return Token{}, messages.Errorf(messages.Unproven, "the claim in the proof was not signed by %q: use credentials that the site issued", clip(body.Issuer))
	}
	return Token{
		Key: body.Subject, Name: body.Name, Issuer: body.Issuer, Account: body.Nats.Account,
		Expires: messages.Time(body.Expires) * 1_000_000,
	}, nil
}

// lastSecond bounds an expiry, in seconds, so that it fits into messages.Time.
const lastSecond = 1 << 40

func part(text string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(data, into) == nil
}

func unreadable() *messages.Error {
	return messages.Errorf(messages.Unproven, "the claim in the proof cannot be read: send the claim in your credentials file")
}

// Verified reports whether the private key of a public nkey has signed data.
func Verified(key string, data, signature []byte) bool {
	public, err := nkeys.FromPublicKey(key)
	return err == nil && public.Verify(data, signature) == nil
}

func clip(s string) string { return messages.Short(s, 96) }
