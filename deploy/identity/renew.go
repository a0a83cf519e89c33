package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
)

// These are the limits of the validity of users' and operators' credentials. The credentials of agents and of the
// site's own parts do not end, but can be revoked. An agent may be disconnected for longer than any limit. The site's
// own parts get new credentials when they connect.
const (
	DefaultLife = 90 * 24 * time.Hour
	MinLife     = time.Minute
	MaxLife     = 10 * 365 * 24 * time.Hour
)

// mostLives limits how long credentials that an operator or the site issued can be renewed: for this many times their
// validity, counted from the first issue. A thief can renew a stolen copy only for the same time.
const mostLives = 4

// These are the beginnings of tags in credentials. The tag "since:" gives the time of the first issue. The tag "lent:"
// gives the lender: the name of a door, or "console".
const (
	since = "since:"
	lent  = "lent:"
)

// first returns the time of issue of the first credentials in a chain of renewals. It reads this time from the claims of
// the credentials that are to be renewed now.
func first(claims *jwt.UserClaims) time.Time {
	for _, tag := range claims.Tags {
		if text, is := strings.CutPrefix(tag, since); is {
			if at, err := strconv.ParseInt(text, 10, 64); err == nil {
				return time.Unix(at, 0)
			}
		}
	}
	return time.Unix(claims.IssuedAt, 0)
}

// SetLife sets how long new credentials of users and operators are valid. 0 means DefaultLife.
func (d *directory) SetLife(life time.Duration) { d.life.Store(int64(life)) }

// expiry returns the expiry for new credentials of a role. The zero time means that they never expire.
func (d *directory) expiry(role Role) time.Time {
	if role != User && role != Operator {
		return time.Time{}
	}
	return time.Now().Add(d.lifetime())
}

func (d *directory) lifetime() time.Duration {
	if life := time.Duration(d.life.Load()); life != 0 {
		return life
	}
	return DefaultLife
}

// Renew extends valid credentials of a user or operator: it signs a new claim for their key. The key must be derived
// from the role's current key, because a revocation of a name revokes only keys that are derived in this way.
func (a *Authority) Renew(n messages.Name, token string) (string, error) {
	refused := func(why string) (string, error) {
		return "", messages.Errorf(messages.PermissionDenied, "credentials of %q: %s; ask an operator of the site for new ones (candor user add)", n, why)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "credentials: %v", err)
	}
	if claims.Name != n {
		return refused("the claim that you want to renew is for another name")
	}
	if claims.Expires != 0 && claims.Expires <= time.Now().Unix() {
		return refused("the credentials have expired")
	}
	if slices.ContainsFunc(claims.Tags, func(tag string) bool { return strings.HasPrefix(tag, lent) }) {
		return refused("a door or the console lent these credentials for an hour: get new ones there")
	}
	k := a.held.Load()
	for _, role := range []Role{User, Operator} {
		if claims.Issuer != publicKey(k.signers[role]) {
			continue
		}
		user, err := userKey(k.signers[role], role, n, k.revoked.generation(role, n))
		if err != nil {
			return "", err
		}
		if claims.Subject != publicKey(user) || k.revoked.list.IsRevoked(claims.Subject, time.Now()) {
			return refused("the credentials were revoked")
		}
		if time.Since(first(claims)) > mostLives*a.lifetime() {
			return refused(fmt.Sprintf("the credentials were renewed for %d days, which is the limit", int(mostLives*a.lifetime().Hours()/24)))
		}
		return k.claim(role, n, claims.Subject, a.expiry(role), since+strconv.FormatInt(first(claims).Unix(), 10))
	}
	return refused("no present key of the site signed these credentials for a user")
}

// Validity returns when credentials were issued and when they expire. It reads these times from the credentials. The
// zero time means that they do not expire. Validity does not check the signature, because the server does.
func Validity(token string) (issued, expires time.Time, err error) {
	claims, err := unproven(token)
	if err != nil {
		return issued, expires, err
	}
	if claims.Expires != 0 {
		expires = time.Unix(claims.Expires, 0)
	}
	return time.Unix(claims.IssuedAt, 0), expires, nil
}

// AccountOf returns the name that is written in credentials. Like Validity, it does not check the signature.
func AccountOf(token string) (messages.Name, error) {
	claims, err := unproven(token)
	return claims.Name, err
}

// unproven decodes a claim without checking its signature.
func unproven(token string) (claims jwt.ClaimsData, err error) {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return claims, messages.Errorf(messages.Invalid, "credentials: %v", err)
	}
	return claims, nil
}

// Due reports whether credentials have less than a third of their life left.
func Due(issued, expires, now time.Time) bool {
	return !expires.IsZero() && expires.Sub(now) < expires.Sub(issued)/3
}

// Lasting reports whether credentials are valid for so long that they need not be replaced now.
func Lasting(creds []byte, now time.Time) bool {
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return false
	}
	issued, expires, err := Validity(token)
	return err == nil && !Due(issued, expires, now)
}
