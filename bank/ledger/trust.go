package ledger

import (
	"crypto/ecdh"
	"crypto/sha256"
	"math"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// Root is a replica's root of trust: the key of the site's account, and the secret that checks marks. It comes from the
// configuration, not from the log.
type Root struct {
	Site     messages.Name
	Account  string           // first public key of the site's account, which is also its name
	Exchange *ecdh.PrivateKey // the exchange key for Account; nil if marks cannot be checked
	// Later returns the exchange key that belongs to a later public key of the account. The function is nil if the
	// account has no later keys.
	Later func(account string) *ecdh.PrivateKey
	Seen  *Seen // marks that replicas of this process have checked; nil if none are remembered
	// Unread is true if a mark (the proof of one transfer in a session) may be accepted without a check when the secret
	// of its session is not known. Only auditors set it, and they count these marks.
	Unread bool
}

// trust has the keys from the site's signed statements, and the open sessions. All fields except root are part of the
// replicated state.
type trust struct {
	root     *Root // nil if this replica has no root of trust
	from     uint64
	roles    []roleKey
	revoked  map[string]bool
	sessions map[uint64]*session
	used     map[digest]messages.Time // by digest of a request that was carried out: when its proof is no longer valid
	accounts []successor              // the keys that replaced the first key of the site's account
}

// successor is a key that signs for the site's account from the record with the number `from` on.
type successor struct {
	key  string
	from uint64
}

type roleKey struct {
	role, key string
	ended     bool
}

// session is a session of a service or operator. Each transfer of the session has a mark, which is computed with the
// session's secret.
type session struct {
	by      messages.Name
	rank    Rank
	key     string // public key of the account in the field `by`
	issuer  string // key that signed the credentials for `key`
	public  []byte
	expires messages.Time

	marker *proof.Marker // created when first needed
}

type digest [16]byte

// SessionFor is the time after which a session ends.
const SessionFor = messages.Duration(24 * 3600_000_000_000)

// maxSessions is the maximum number of sessions of one name. A new session ends the oldest.
const maxSessions = 64

// Trust makes the ledger check the proofs of requests against a root of trust.
func (l *Ledger) Trust(r *Root) { l.requests.trust.root = r }

// A bank can begin to require proofs later than its first record. Proven returns the number of the record at which it
// began, or 0 if it has not begun. From this record on, every command was made by a proven request.
func (l *Ledger) Proven() uint64 { return l.requests.trust.from }

// Roles returns the keys that sign credentials, oldest first.
func (l *Ledger) Roles() []messages.RoleKey {
	var list []messages.RoleKey
	for _, r := range l.requests.trust.roles {
		if !r.ended {
			list = append(list, messages.RoleKey{Role: r.role, Key: r.key})
		}
	}
	return list
}

// Revoked reports whether a key was revoked.
func (l *Ledger) Revoked(key string) bool { return l.requests.trust.revoked[key] }

var ranks = map[string]Rank{"user": User, "operator": Operator, "service": Service}

// readKeys decodes a statement of the site's keys. It refuses one that a replaced key of the account signed.
func (t *trust) readKeys(r *messages.SignedRequest) (messages.SiteKeys, *messages.Error) {
	k, err := proof.ReadKeys(t.root.Site, t.root.Account, r.Payload, r.Proof.Signature)
	if err == nil && !t.follows(k.Succession, math.MaxUint64) {
		return k, messages.Errorf(messages.Unproven, "a retired key of the site's account signed the list of the site's keys: copy the site's present keys directory to this host")
	}
	return k, err
}

func (t *trust) follows(s []messages.Succession, records uint64) bool {
	for i, a := range t.accounts {
		if a.from <= records && (i >= len(s) || s[i].Key != a.key) {
			return false
		}
	}
	return true
}

// A key of the site's account can have successors. `s` is a list of them, and `records` is a number of records of the
// journal. Follows reports whether the list has every key that was valid for the account when the journal had that many
// records.
func (l *Ledger) Follows(s []messages.Succession, records uint64) bool {
	return l.requests.trust.follows(s, records)
}

// Successors returns how many times the key of the site's account has been replaced. It also returns the exchange key
// that belongs to the current account key, or nil if this replica does not have that exchange key.
func (l *Ledger) Successors() (int, *ecdh.PrivateKey) {
	t := &l.requests.trust
	return len(t.accounts), t.exchange()
}

// exchange returns the bank's key for agreeing with clients on the secrets of new sessions. It returns nil if this
// replica does not have this key.
func (t *trust) exchange() *ecdh.PrivateKey {
	n := len(t.accounts)
	switch {
	case n == 0:
		return t.root.Exchange
	case t.root.Later == nil:
		return nil
	}
	return t.root.Later(t.accounts[n-1].key)
}

// A succession is a list of keys, each signed by the one before it. After the record with this number, succeed makes
// the last key of the list the key that signs for the account. All sessions from before this record end, because the
// holder of the old key knows their secrets.
func (t *trust) succeed(s []messages.Succession, number uint64) {
	for _, link := range s[min(len(s), len(t.accounts)):] {
		t.accounts, t.sessions = append(t.accounts, successor{key: strings.Clone(link.Key), from: number}), nil
	}
}

// learn applies a statement of the site's keys, and reports whether it was new.
func (t *trust) learn(k *messages.SiteKeys) (fresh bool) {
	fresh = len(k.Succession) > len(t.accounts)
	for _, r := range k.Roles {
		if _, known := ranks[r.Role]; known && t.role(r.Key) == nil && len(t.roles) < maxKeys {
			t.roles, fresh = append(t.roles, roleKey{role: r.Role, key: r.Key}), true
		}
	}
	for _, key := range k.Ended {
		if r := t.role(key); r != nil && !r.ended {
			r.ended, fresh = true, true
		}
	}
	for _, key := range k.Revoked {
		if !t.revoked[key] {
			if t.revoked == nil {
				t.revoked = map[string]bool{}
			}
			t.revoked[key], fresh = true, true
		}
	}
	return fresh
}

// maxKeys is the maximum number of keys of roles that a site ever had. It bounds how often keys can be rotated.
const maxKeys = 10_000

func (t *trust) role(key string) *roleKey {
	i := slices.IndexFunc(t.roles, func(r roleKey) bool { return r.key == key })
	if i < 0 {
		return nil
	}
	return &t.roles[i]
}

// vouch checks the proof of a request. The proof contains the key that signed the request, and a token that says whose
// key this is. vouch returns this token, and the rank that it gives.
func (t *trust) vouch(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (proof.Token, Rank, *messages.Error) {
	token, err := proof.ReadToken(r.Proof.Token)
	if err != nil {
		return token, User, err
	}
	if token.Account != t.root.Account {
		return token, User, messages.Errorf(messages.Unproven, "the proof is of another site: use credentials of site %q", t.root.Site)
	}
	rank, err := t.standing(token.Issuer, token.Key)
	if err != nil {
		return token, rank, err
	}
	if token.Expires != 0 && token.Expires <= now {
		return token, rank, messages.Errorf(messages.Unproven, "the credentials of %q ended at %v: get new credentials", clip(by), token.Expires)
	}
	if off := r.Proof.At.Sub(now); off > proof.Window || off < -proof.Window {
		return token, rank, proof.RefuseTime(r.Proof.At, now)
	}
	return token, rank, proof.Check(&token, t.root.Site, verb, by, r)
}

// standing returns the rank that credentials give. The argument `key` is the key in the credentials, and `issuer` is
// the key that signed the credentials. The issuer decides the rank. Revoked credentials are an error.
func (t *trust) standing(issuer, key string) (Rank, *messages.Error) {
	role := t.role(issuer)
	if role == nil || role.ended {
		return User, messages.Errorf(messages.Unproven, "the credentials were not signed with a key that the site uses now: get new credentials")
	}
	if t.revoked[key] {
		return User, messages.Errorf(messages.Unproven, "the credentials were revoked: get new credentials")
	}
	return ranks[role.role], nil
}

func digestOf(verb string, by messages.Name, r *messages.SignedRequest) digest {
	var w codec
	w.text(&verb)
	w.text(&by)
	number(&w, &r.Proof.At)
	w.raw(r.Payload)
	sum := sha256.Sum256(w.b)
	return digest(sum[:])
}

// spend stores the digest of a request that was carried out, so that the request is not carried out again. The digest
// is kept until the request's proof is no longer valid.
func (t *trust) spend(d digest, until, now messages.Time) {
	if t.used == nil {
		t.used = map[digest]messages.Time{}
	}
	if len(t.used) > 1024 && len(t.used)%256 == 0 {
		for old, end := range t.used {
			if end < now {
				delete(t.used, old)
			}
		}
	}
	t.used[d] = until
}

func (t *trust) enter(number uint64, s *session, now messages.Time) {
	if t.sessions == nil {
		t.sessions = map[uint64]*session{}
	}
	count, oldest := 0, number
	for n, other := range t.sessions {
		switch {
		case other.expires <= now:
			delete(t.sessions, n)
		case other.by == s.by:
			count, oldest = count+1, min(oldest, n)
		}
	}
	if count >= maxSessions {
		delete(t.sessions, oldest)
	}
	t.sessions[number] = s
}

// session returns an open session of a name. It returns an error if there is no such session, or if the credentials
// that opened it have ended or were revoked.
func (t *trust) session(number uint64, by messages.Name, now messages.Time) (*session, *messages.Error) {
	s := t.sessions[number]
	if s == nil || s.by != by || s.expires <= now {
		return nil, messages.Errorf(messages.Unproven, "there is no session %d of %q, or it has ended: open another", number, clip(by))
	}
	if _, err := t.standing(s.issuer, s.key); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) open(site messages.Name, exchange *ecdh.PrivateKey) (*proof.Marker, *messages.Error) {
	if s.marker != nil {
		return s.marker, nil
	}
	secret, err := proof.Agree(site, exchange, s.public, s.public, exchange.PublicKey().Bytes())
	if err != nil {
		return nil, messages.AsError("", err)
	}
	s.marker = proof.NewMarker(secret)
	return s.marker, nil
}
