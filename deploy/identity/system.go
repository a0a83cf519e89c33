package identity

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// systemFor is how long credentials for the system account are good: as long as one
// command of an operator takes.
const systemFor = 5 * time.Minute

// SystemCredentials open the system account of the site's servers, for a command of
// who has its keys.
func (a *Authority) SystemCredentials() (Credentials, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for the system account: %w", err)
	}
	claims := jwt.NewUserClaims(publicKey(user))
	claims.Name = "operator"
	claims.Expires = time.Now().Add(systemFor).Unix()
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
