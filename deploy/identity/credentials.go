package identity

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// Credentials are a claim to a name in a role, signed, and the seed of the key
// that proves it.
type Credentials struct{ Token, Seed string }

// Issue makes credentials in the usual format of a creds file. Their key follows
// from the role's, the name, and how often the name's credentials were revoked:
// every host issues the same.
func (a *Authority) Issue(role Role, n messages.Name) ([]byte, error) {
	c, err := a.Credentials(role, n)
	if err != nil {
		return nil, err
	}
	return c.file()
}

// Credentials makes credentials to be used in this process.
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

// claimed are credentials with a key, whose claim to be holder's claim signs.
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

// claimedAnew are credentials with a key that is made for them.
func claimedAnew(holder string, claim func(key string) (token string, err error)) (Credentials, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for %s: %w", holder, err)
	}
	return claimed(user, holder, claim)
}

// file writes credentials in the usual format of a creds file.
func (c Credentials) file() ([]byte, error) { return jwt.FormatUserConfig(c.Token, []byte(c.Seed)) }

// Enrol signs the claim to a name for a key whose seed is elsewhere.
func (a *Authority) Enrol(role Role, n messages.Name, key string) (token string, err error) {
	if err := checkRole(role, n); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicUserKey(key) {
		return "", messages.Errorf(messages.Invalid, "key: is not a public user key (nkeys); the agent makes one when it joins")
	}
	return a.held.Load().claim(role, n, key, time.Time{})
}

// JoinCredentials makes what the holder of a join token speaks as, until it
// expires: a key of its own that is used once.
func (a *Authority) JoinCredentials(id string, expires time.Time) (Credentials, error) {
	name := messages.ServiceIdentity(id)
	if err := checkRole(Joiner, name); err != nil {
		return Credentials{}, err
	}
	return claimedAnew(id, func(key string) (string, error) { return a.held.Load().claim(Joiner, name, key, expires) })
}

func checkRole(role Role, n messages.Name) error {
	if !slices.Contains(signed, role) {
		return messages.Errorf(messages.Invalid, "role %q: is none of %v", role, signed)
	}
	return checkName(role, n)
}

// userKey is the key of a name in a role.
func userKey(signer nkeys.KeyPair, role Role, n messages.Name, generation int) (nkeys.KeyPair, error) {
	return fromSignature(signer, nkeys.PrefixByteUser, fmt.Sprintf("candor key of %s %s, number %d", role, n, generation))
}

// claim signs that a key is a name's, until it expires; the zero time: without an end. A
// renewal says when the first claim was issued.
func (k *keys) claim(role Role, n messages.Name, key string, expires time.Time, issued ...time.Time) (string, error) {
	claims := jwt.NewUserClaims(key)
	claims.Name = n
	claims.IssuerAccount = k.name
	claims.SetScoped(true)
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	for _, at := range issued {
		claims.Tags.Add(since + strconv.FormatInt(at.Unix(), 10))
	}
	return encode(claims, k.signers[role], n)
}

// encode signs the claim of a holder.
func encode(claims *jwt.UserClaims, signer nkeys.KeyPair, holder string) (string, error) {
	token, err := claims.Encode(signer)
	if err != nil {
		return "", fmt.Errorf("signing the claim of %s: %w", holder, err)
	}
	return token, nil
}

// Issued reports the role and name that credentials of this authority claim; an
// error if they are another authority's, or no credentials at all, or if they were
// revoked or signed with a key that was replaced since: they are to be issued anew.
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

// userClaims are what a credentials file says, signed by whoever it names.
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

// publicKey of a pair that was read or made here, and so has one.
func publicKey(pair nkeys.KeyPair) string {
	public, err := pair.PublicKey()
	if err != nil {
		panic(err) // a pair from a seed always has its public key
	}
	return public
}
