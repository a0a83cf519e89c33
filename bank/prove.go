package bank

import (
	"context"
	"crypto/ecdh"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/proof"
)

// Keys are those of the site by which a bank knows who asks. They come from the
// site's keys directory, never from the log.
type Keys interface {
	AccountKey() string           // public; it stays
	RoleKeys() []messages.RoleKey // that sign credentials now; of a role, the present one last
	RevokedKeys() []string        // of names
	SignAccount([]byte) ([]byte, error)
	Exchange() (*ecdh.PrivateKey, error) // it stays
	// ProvenFrom is the record from which on the books are known to be proven, 0
	// if they are not; KeepProven remembers it where the log does not reach.
	ProvenFrom() (uint64, error)
	KeepProven(uint64) error
}

// seen is shared by the replicas of this process, which check each mark once.
var seen = ledger.NewSeen()

// newRoot reads what the ledger checks proofs against; nil without keys.
func newRoot(c *Config) (*ledger.Root, error) {
	if c.Keys == nil {
		return nil, nil
	}
	exchange, err := c.Keys.Exchange()
	if err != nil {
		return nil, err
	}
	from, err := c.Keys.ProvenFrom()
	if err != nil {
		return nil, err
	}
	return &ledger.Root{Site: c.Site, Account: c.Keys.AccountKey(), Exchange: exchange, From: from, Seen: seen}, nil
}

// provenFrom is the first record from which on everything is proven, 0 if nothing
// is.
func (b *Bank) provenFrom() (from uint64) {
	b.machine.read(func(l *ledger.Ledger) { from = l.Proven() })
	return from
}

// prove gives a command the proof that came with the request, where the books
// want one.
func (b *Bank) prove(ctx context.Context, c *ledger.Command) *messages.Error {
	switch {
	case c.Verb == ledger.Expire || c.Verb == ledger.Keys:
		return nil
	case b.provenFrom() == 0:
		c.Asked, c.Proof = nil, nil
		return nil
	case c.Verb == ledger.Transfers && c.Proof != nil:
		return nil
	case c.Verb == ledger.Transfers:
		return messages.Errorf(messages.Unproven, "the transfers carry no marks of a session: ask as candor's own clients do, which open one")
	}
	if c.Asked = bus.Asked(ctx); c.Asked == nil {
		return unsigned()
	}
	return nil
}

func unsigned() *messages.Error {
	return messages.Errorf(messages.Unproven, "nothing proves who asked: use the command candor, or send the header %s, which \"candor bank sign\" makes from your credentials", proof.Header)
}

// declareWithin bounds how long the site's statement of its keys may take.
const declareWithin = 5 * time.Second

// declare has the ledger know the site's keys as they are. The first statement of
// a new site makes every later command need a proof; of a site that has records
// without, an operator does.
func (b *Bank) declare(ctx context.Context, begin bool) error {
	if b.config.Keys == nil {
		return nil
	}
	var from, count uint64
	var known []messages.RoleKey
	keys := messages.SiteKeys{Site: b.config.Site, Roles: b.config.Keys.RoleKeys()}
	b.machine.read(func(l *ledger.Ledger) {
		h := l.History()
		from, count, known = l.Proven(), h.Count(), l.Roles()
		for _, key := range b.config.Keys.RevokedKeys() {
			if !l.Revoked(key) {
				keys.Revoked = append(keys.Revoked, key)
			}
		}
	})
	if from == 0 && count > 0 && !begin {
		return nil
	}
	keys.Ended = ended(known, keys.Roles)
	keys.Roles = slices.DeleteFunc(slices.Clone(keys.Roles), func(r messages.RoleKey) bool { return slices.Contains(known, r) })
	if from != 0 && len(keys.Roles)+len(keys.Ended)+len(keys.Revoked) == 0 {
		return nil
	}
	payload, err := messages.Marshal(&keys, messages.Msgpack)
	if err != nil {
		return err
	}
	signature, err := b.config.Keys.SignAccount(proof.KeysText(payload))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, declareWithin)
	defer cancel()
	c := ledger.Command{Verb: ledger.Keys, Fresh: !begin, Asked: &messages.SignedRequest{Proof: messages.Proof{Signature: signature}, Payload: payload}}
	_, err = b.propose(ctx, &c)
	if messages.KindOf(err) == messages.Conflict {
		return nil // there were records after all
	}
	if err == nil {
		b.config.Log.Info("the site's keys are in the books", zap.Int("new", len(keys.Roles)), zap.Int("ended", len(keys.Ended)), zap.Int("revoked", len(keys.Revoked)))
	}
	return err
}

// keepProven remembers beside the keys from when on the books are proven.
func (b *Bank) keepProven() {
	from := b.provenFrom()
	if b.config.Keys == nil || from == 0 || from == b.kept {
		return
	}
	known, err := b.config.Keys.ProvenFrom()
	if err == nil && known == 0 {
		err = b.config.Keys.KeepProven(from)
	}
	if err != nil {
		b.config.Log.Warn("the keys directory does not say yet from when on the books are proven; will try again", zap.Error(err))
		return
	}
	b.kept = from
}

// ended lists the keys that sign no more: those before the present one of their
// role that the keys directory has no longer. A key that came after it is of a
// rotation of which this host has not heard yet, and stays.
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

// session opens a session for a service or an operator.
func (b *Bank) session(ctx context.Context, caller messages.Name, _ messages.SessionRequest) (messages.SessionReply, error) {
	rank := b.rank(caller)
	if rank == ledger.User {
		return messages.SessionReply{}, messages.Errorf(messages.PermissionDenied, "account %q needs no session: only services of the site and operators transfer", caller)
	}
	if b.provenFrom() == 0 {
		return messages.SessionReply{}, messages.Errorf(messages.Invalid, "the bank of this site takes no proofs yet: ask without")
	}
	result, err := b.propose(ctx, &ledger.Command{Verb: ledger.Session, By: caller, Rank: rank})
	return result.Session, err
}

// trust says whether the bank wants proofs.
func (b *Bank) trust(ctx context.Context, _ messages.Name, _ messages.Empty) (messages.TrustReply, error) {
	if err := b.verify(ctx); err != nil {
		return messages.TrustReply{}, err
	}
	return b.trusted()
}

func (b *Bank) trusted() (messages.TrustReply, error) {
	from := b.provenFrom()
	r := messages.TrustReply{Proven: from != 0, From: from}
	if b.config.Keys == nil {
		return r, nil
	}
	r.Exchange = b.machine.root.Exchange.PublicKey().Bytes()
	var err error
	r.Endorsement, err = b.config.Keys.SignAccount(proof.ExchangeText(b.config.Site, r.Exchange))
	return r, err
}

// begin has every later command need a proof.
func (b *Bank) begin(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.TrustReply, error) {
	if err := b.operator(caller, "have requests proven"); err != nil {
		return messages.TrustReply{}, err
	}
	if b.config.Keys == nil {
		return messages.TrustReply{}, messages.Errorf(messages.NotFound, "the bank runs without the site's keys: give each of its replicas the keys directory")
	}
	if err := b.declare(ctx, true); err != nil {
		return messages.TrustReply{}, err
	}
	return b.trusted()
}
