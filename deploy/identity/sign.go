package identity

import (
	"fmt"

	"github.com/candor-grid/candor/messages/money"
)

// signer signs for the site's bank, and says with which keys others can check the signatures.
type signer struct{ *directory }

// Sign signs data for the site with the bank's key. Until this key is replaced for the first time, it is the key of the
// site's NATS account. The public half of this key is in every credentials file.
func (s signer) Sign(data []byte) ([]byte, error) { return s.held.Load().bank.Sign(data) }

// PublicKey returns the key that checks signatures of Sign.
func (s signer) PublicKey() (string, error) { return s.held.Load().bank.PublicKey() }

// NextKey returns the key that Sign will use after the rotation of the bank's key, or "".
func (s signer) NextKey() string {
	if next := s.held.Load().next; next != nil {
		return publicKey(next)
	}
	return ""
}

// AccountKey returns the first public key of the site's account. This key stays the name of the account, even after
// another key signs for it.
func (s signer) AccountKey() string { return s.held.Load().name }

// Endorse signs another key with the key of the site's account. The signature says that the other key may sign for the
// site. The site can make such keys later: whoever knows the account's public key can then check them, and the
// signatures made with them.
func (s signer) Endorse(key string) ([]byte, error) {
	signature, err := s.held.Load().account.Sign(money.EndorsedKey(s.site, key))
	if err != nil {
		return nil, fmt.Errorf("endorsing key %s: %w", key, err)
	}
	return signature, nil
}

// SiteKey returns the public key of the account that issued credentials.
func SiteKey(creds []byte) (string, error) {
	claims, err := userClaims(creds)
	if err != nil {
		return "", err
	}
	return claims.IssuerAccount, nil
}
