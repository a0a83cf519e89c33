package bank

import (
	"context"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// Keys are the site's keys, which identify callers. They come from the site's keys directory, never from the log.
type Keys interface {
	AccountKey() string                  // the first public key, which is the account's name
	RoleKeys() []messages.RoleKey        // keys that sign credentials; the last one of each role is the present one
	RevokedKeys() []string               // revoked keys of names
	SignAccount([]byte) ([]byte, error)  // signs with the present key of the site's account
	Exchange() (*ecdh.PrivateKey, error) // the exchange key that belongs to AccountKey
	// Succession returns all keys that the site's account has had, from its first key (AccountKey) to the present one.
	// Later takes one of these keys, and returns the exchange key (the key for sessions) that belongs to it, or nil if
	// it is unknown.
	Succession() []messages.Succession
	Later(account string) *ecdh.PrivateKey
}

// seen is shared by the replicas of this process, so that each mark (a session's proof of a command) is checked only once.
var seen = ledger.NewSeen()

// newRoot returns the root of trust for the ledger's checks, or nil if there are no keys.
func newRoot(c *Config) (*ledger.Root, error) {
	if c.Keys == nil {
		return nil, nil
	}
	exchange, err := c.Keys.Exchange()
	if err != nil {
		return nil, err
	}
	return &ledger.Root{Site: c.Site, Account: c.Keys.AccountKey(), Exchange: exchange, Later: c.Keys.Later, Seen: seen}, nil
}

// sealingKey returns the secret with which this replica seals the images that it has checked. The secret is derived
// from the present key of the site's account. So an attacker who can write to the disk, and does not have this key,
// cannot forge an image.
func sealingKey(c *Config) ([]byte, error) {
	exchange, err := c.Keys.Exchange()
	if s := c.Keys.Succession(); len(s) > 0 {
		exchange, err = c.Keys.Later(s[len(s)-1].Key), nil
	}
	if err != nil {
		return nil, err
	}
	if exchange == nil {
		return nil, errNoPresentKey
	}
	return hkdf.Key(sha256.New, exchange.Bytes(), nil, "candor checked 1 "+c.Site+" "+c.Replica, sha256.Size)
}

var errNoPresentKey = messages.Errorf(messages.Unavailable, "this replica does not have the present key of the site's account: copy the site's present keys directory to this host")

// keys passes the site's keys from the keys directory to the ledger. In the other direction, it passes what the ledger
// knows about keys to the directory.
type keys struct {
	config  *Config
	group   *group
	machine *machine
}

const declareWithin = 5 * time.Second

// declare commits a statement of the site's present keys. The first statement is the first record; every later command
// needs a proof.
func (k *keys) declare(ctx context.Context) error {
	if k.config.Keys == nil {
		return nil
	}
	var from uint64
	var known []messages.RoleKey
	var successors int
	keys := messages.SiteKeys{Site: k.config.Site, Roles: k.config.Keys.RoleKeys(), Succession: k.config.Keys.Succession()}
	k.machine.read(func(l *ledger.Ledger) {
		from, known = l.Proven(), l.Roles()
		successors, _ = l.Successors()
		for _, key := range k.config.Keys.RevokedKeys() {
			if !l.Revoked(key) {
				keys.Revoked = append(keys.Revoked, key)
			}
		}
	})
	keys.Ended = ended(known, keys.Roles)
	keys.Roles = slices.DeleteFunc(slices.Clone(keys.Roles), func(r messages.RoleKey) bool { return slices.Contains(known, r) })
	if from != 0 && len(keys.Roles)+len(keys.Ended)+len(keys.Revoked) == 0 && len(keys.Succession) == successors {
		return nil
	}
	payload, err := wire.Marshal(&keys, wire.Msgpack)
	if err != nil {
		return err
	}
	signature, err := k.config.Keys.SignAccount(proof.KeysText(payload))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, declareWithin)
	defer cancel()
	c := ledger.Command{Verb: ledger.Keys, Asked: &messages.SignedRequest{Proof: messages.Proof{Signature: signature}, Payload: payload}}
	_, err = k.group.propose(ctx, &c)
	if err == nil {
		k.config.Log.Info("the site's keys are in the books", zap.Int("new", len(keys.Roles)), zap.Int("ended", len(keys.Ended)), zap.Int("revoked", len(keys.Revoked)))
	}
	return err
}

// redeclare commits a new statement of the site about its keys, after a key was rotated or revoked.
func (k *keys) redeclare(ctx context.Context) {
	if err := k.declare(ctx); err != nil {
		k.config.Log.Warn("the books do not have the present keys of the site; will try again", zap.Error(err))
	}
}

// ended returns the keys that no longer sign: they are not in the keys directory, and are older than the present key of
// their role. A newer key that is missing has not ended: this host may just not have it yet.
func ended(known, held []messages.RoleKey) (list []string) {
	present := map[string]string{}
	for _, r := range held {
		present[r.Role] = r.Key
	}
	for i, r := range known {
		if slices.Contains(held, r) || present[r.Role] == "" {
			continue
		}
		at := slices.Index(known, messages.RoleKey{Role: r.Role, Key: present[r.Role]})
		if at < 0 || at > i {
			list = append(list, r.Key)
		}
	}
	return list
}

func (k *keys) trusted() (messages.TrustReply, error) {
	from := k.group.provenFrom()
	r := messages.TrustReply{Proven: from != 0, From: from}
	if k.config.Keys == nil {
		return r, nil
	}
	var exchange *ecdh.PrivateKey
	k.machine.read(func(l *ledger.Ledger) { _, exchange = l.Successors() })
	if exchange == nil {
		return r, errNoPresentKey
	}
	r.Exchange, r.Succession = exchange.PublicKey().Bytes(), k.config.Keys.Succession()
	var err error
	r.Endorsement, err = k.config.Keys.SignAccount(proof.ExchangeText(k.config.Site, r.Exchange))
	return r, err
}
