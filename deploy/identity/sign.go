package identity

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// signer signs in the site's name, for its bank, and says with which keys others
// check that.
type signer struct{ *directory }

// Sign signs data in the site's name, with the bank's key. Before that was rotated
// it is the key of the account, whose public half stands in every credentials file
// that the site issues.
func (s signer) Sign(data []byte) ([]byte, error) { return s.held.Load().bank.Sign(data) }

// PublicKey is what signatures of the site are checked with.
func (s signer) PublicKey() (string, error) { return s.held.Load().bank.PublicKey() }

// NextKey is the key that Sign is going to use once the rotation of the bank's
// key ends; "" if none is under way.
func (s signer) NextKey() string {
	if next := s.held.Load().next; next != nil {
		return publicKey(next)
	}
	return ""
}

// AccountKey is the first public key of the account in which the site's traffic runs: its
// name, whichever key speaks for it.
func (s signer) AccountKey() string { return s.held.Load().name }

// Endorse is the account's word that a key signs in the site's name: with it,
// whoever knows the account's key can check signatures of later keys.
func (s signer) Endorse(key string) ([]byte, error) {
	signature, err := s.held.Load().account.Sign(messages.EndorsedKey(s.site, key))
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
