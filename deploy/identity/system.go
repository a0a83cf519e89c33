package identity

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// How long credentials for the system account are good: as long as one command of an
// operator takes; and for a part of the site, which makes new ones when it connects.
const (
	ForCommand = 5 * time.Minute
	ForService = 24 * time.Hour
)

// SystemCredentials open the system account of the site's servers, for who has its
// keys.
func (a *Authority) SystemCredentials(life time.Duration) (Credentials, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for the system account: %w", err)
	}
	claims := jwt.NewUserClaims(publicKey(user))
	claims.Name = "operator"
	claims.Expires = time.Now().Add(life).Unix()
	token, err := claims.Encode(a.held.Load().system)
	if err != nil {
		return Credentials{}, fmt.Errorf("signing a claim of the system account: %w", err)
	}
	seed, err := user.Seed()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for the system account: %w", err)
	}
	return Credentials{Token: token, Seed: string(seed)}, nil
}

// RoleOf is the role whose credentials a public key signs, now or before a rotation that
// has not ended; "" if it signs none.
func (a *Authority) RoleOf(issuer string) Role {
	k := a.held.Load()
	for _, role := range signed {
		for _, signer := range []nkeys.KeyPair{k.signers[role], k.retired[role]} {
			if signer != nil && publicKey(signer) == issuer {
				return role
			}
		}
	}
	return ""
}
