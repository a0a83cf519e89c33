package identity

import (
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// An operator's command, or a part of the site, can make credentials for the system account. Credentials for a command
// are valid for ForCommand. Credentials for a part of the site are valid for ForService, and the part makes new ones
// each time that it connects.
const (
	ForCommand = 5 * time.Minute
	ForService = 24 * time.Hour
)

// SystemCredentials returns credentials for the system account of the site's servers.
func (a *Authority) SystemCredentials(life time.Duration) (Credentials, error) {
	return claimedAnew("the system account", func(key string) (string, error) {
		claims := jwt.NewUserClaims(key)
		claims.Name = "operator"
		claims.Expires = time.Now().Add(life).Unix()
		return encode(claims, a.held.Load().system, "the system account")
	})
}

// RoleOf returns the role whose credentials a public key signs, or "". During a rotation it also knows the earlier key.
func (a *Authority) RoleOf(issuer string) Role {
	k := a.held.Load()
	for _, role := range signed {
		if slices.ContainsFunc(k.ofRole(role), func(signer nkeys.KeyPair) bool { return publicKey(signer) == issuer }) {
			return role
		}
	}
	return ""
}
