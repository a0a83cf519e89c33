package identity

// Sign signs data in the site's name: with the key of its account, whose
// public half stands in every credentials file that the site issues.
func (a *Authority) Sign(data []byte) ([]byte, error) { return a.account.Sign(data) }

// PublicKey is what signatures of the site are checked with.
func (a *Authority) PublicKey() (string, error) { return a.account.PublicKey() }

// SiteKey returns the public key of the site that issued credentials.
func SiteKey(creds []byte) (string, error) {
	claims, err := userClaims(creds)
	if err != nil {
		return "", err
	}
	return claims.IssuerAccount, nil
}
