package identity

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// Credentials are a signed claim that a key belongs to a name in a role, and the seed of that key.
type Credentials struct{ Token, Seed string }

// Issue makes credentials in the usual format of a creds file. The key of the credentials is derived from the role's
// key, the name, and how often this name was revoked. So every host issues the same credentials.
func (a *Authority) Issue(role Role, n messages.Name) ([]byte, error) {
	c, err := a.Credentials(role, n)
	if err != nil {
		return nil, err
	}
	return c.file()
}

// Credentials makes credentials for use in this process.
func (a *Authority) Credentials(role Role, n messages.Name) (Credentials, error) {
	if err := checkRole(role, n); err != nil {
		return Credentials{}, err
	}
	k := a.held.Load()
	user, err := userKey(k.signers[role], role, n, k.revoked.generation(role, n))
	if err != nil {
		return Credentials{}, err
	}
	return claimed(user, n, func(key string) (string, error) { return k.claim(role, n, key, a.expiry(role)) })
}

// claimed returns credentials with the key `user`. They have two parts: the seed of this key, and a claim that the key
// belongs to the holder. The function `claim` makes and signs the claim.
func claimed(user nkeys.KeyPair, holder string, claim func(key string) (token string, err error)) (Credentials, error) {
	token, err := claim(publicKey(user))
	if err != nil {
		return Credentials{}, err
	}
	seed, err := user.Seed()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for %s: %w", holder, err)
	}
	return Credentials{Token: token, Seed: string(seed)}, nil
}

// claimedAnew makes a new key, gets a signed claim for this key from the function `claim`, and returns both as
// credentials.
func claimedAnew(holder string, claim func(key string) (token string, err error)) (Credentials, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for %s: %w", holder, err)
	}
	return claimed(user, holder, claim)
}

func (c Credentials) file() ([]byte, error) { return jwt.FormatUserConfig(c.Token, []byte(c.Seed)) }

// File returns credentials as the text of a creds file.
func (c Credentials) File() (string, error) {
	text, err := c.file()
	return string(text), err
}

// Enrol signs the claim that a key belongs to a name in a role. It is for a caller who has only the public key, and not
// the key's seed.
func (a *Authority) Enrol(role Role, n messages.Name, key string) (token string, err error) {
	if err := checkRole(role, n); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicUserKey(key) {
		return "", messages.Errorf(messages.Invalid, "key: is not a public user key (nkeys); the agent makes one when it joins")
	}
	return a.held.Load().claim(role, n, key, time.Time{})
}

// JoinCredentials makes the credentials of a join token. Their key is new, and they expire.
func (a *Authority) JoinCredentials(id string, expires time.Time) (Credentials, error) {
	name := messages.ServiceIdentity(id)
	if err := checkRole(Joiner, name); err != nil {
		return Credentials{}, err
	}
	return claimedAnew(id, func(key string) (string, error) { return a.held.Load().claim(Joiner, name, key, expires) })
}

// LendFor is how long the credentials that a door or the console lends are valid.
const LendFor = time.Hour

// Lend makes credentials for a user or an operator. The argument `lender` names the door (a service on a login node) or
// the console that has recognised the person. The credentials are valid for LendFor, and cannot be renewed.
func (a *Authority) Lend(role Role, n messages.Name, lender string) (c Credentials, expires time.Time, err error) {
	if role != User && role != Operator {
		return c, expires, messages.Errorf(messages.Invalid, "role %q: only credentials of users and operators can be lent", role)
	}
	if err := checkRole(role, n); err != nil {
		return c, expires, err
	}
	k := a.held.Load()
	user, err := userKey(k.signers[role], role, n, k.revoked.generation(role, n))
	if err != nil {
		return c, expires, err
	}
	expires = time.Now().Add(LendFor).Truncate(time.Second)
	c, err = claimed(user, n, func(key string) (string, error) { return k.claim(role, n, key, expires, lent+lender) })
	return c, expires, err
}

func checkRole(role Role, n messages.Name) error {
	if !slices.Contains(signed, role) {
		return messages.Errorf(messages.Invalid, "role %q: is not one of %v", role, signed)
	}
	return checkName(role, n)
}

func userKey(signer nkeys.KeyPair, role Role, n messages.Name, generation int) (nkeys.KeyPair, error) {
	return fromSignature(signer, nkeys.PrefixByteUser, fmt.Sprintf("candor key of %s %s, number %d", role, n, generation))
}

// claim signs that a key belongs to a name until a time; the zero time means for ever. The tags say how the claim was
// issued.
func (k *keys) claim(role Role, n messages.Name, key string, expires time.Time, tags ...string) (string, error) {
	claims := jwt.NewUserClaims(key)
	claims.Name = n
	claims.IssuerAccount = k.name
	claims.SetScoped(true)
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	claims.Tags.Add(tags...)
	return encode(claims, k.signers[role], n)
}

func encode(claims *jwt.UserClaims, signer nkeys.KeyPair, holder string) (string, error) {
	token, err := claims.Encode(signer)
	if err != nil {
		return "", fmt.Errorf("signing the claim of %s: %w", holder, err)
	}
	return token, nil
}

// Issued returns the role and the name in credentials of this authority. It returns an error if another authority
// signed them, if they were revoked, or if their signing key was replaced. After such an error, the caller must issue
// new credentials.
func (a *Authority) Issued(creds []byte) (Role, messages.Name, error) {
	claims, err := userClaims(creds)
	if err != nil {
		return "", "", err
	}
	k := a.held.Load()
	for _, r := range signed {
		if claims.Issuer != publicKey(k.signers[r]) || claims.IssuerAccount != k.name {
			continue
		}
		if k.revoked.list.IsRevoked(claims.Subject, time.Unix(claims.IssuedAt, 0)) {
			return "", "", messages.Errorf(messages.PermissionDenied, "credentials of %q: were revoked", claims.Name)
		}
		return r, claims.Name, nil
	}
	return "", "", messages.Errorf(messages.PermissionDenied, "credentials of %q: not issued with the keys of site %s", claims.Name, a.site)
}

// userClaims reads the claims in a credentials file. The issuer that is named in the claims must have signed them.
func userClaims(creds []byte) (*jwt.UserClaims, error) {
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return claims, nil
}

// publicKey returns the public key of a pair, which this package has read or made.
func publicKey(pair nkeys.KeyPair) string {
	public, err := pair.PublicKey()
	if err != nil {
		panic(err) // a pair from a seed has a public key
	}
	return public
}
