package bus

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// Identity signs requests, to prove that they come from the holder of a name.
type Identity struct {
	Principal func() (proof.Principal, error) // returns the present principal, because credentials are renewed
	Clock     func() messages.Time            // nil means the wall clock

	mu       sync.Mutex
	sessions map[messages.Name]*session // open sessions, by site

	// ahead has a duration for each site: how far the time of the site's bank is ahead of this process's clock. A bank
	// says this when it refuses a request. A bank's time never goes back, so it can be ahead of all clocks for days.
	ahead sync.Map
}

// session is a session at the bank of a site. Number 0 means that the bank requires no proofs.
type session struct {
	number  uint64
	expires messages.Time
	markers sync.Pool
}

// identified is a bus that can prove who sends its requests.
type identified interface{ identity() *Identity }

func identityOf(b Bus) *Identity {
	if i, ok := b.(identified); ok {
		return i.identity()
	}
	return nil
}

func principalOf(c *Config) *Identity {
	switch {
	case c.Renew != nil:
		return &Identity{Principal: func() (proof.Principal, error) {
			token, seed, err := c.Renew()
			return proof.Principal{Token: token, Seed: seed}, err
		}}
	case c.JWT != "":
		p := proof.Principal{Token: c.JWT, Seed: c.Seed}
		return &Identity{Principal: func() (proof.Principal, error) { return p, nil }}
	case c.CredsFile != "":
		return &Identity{Principal: func() (proof.Principal, error) { return ReadPrincipal(c.CredsFile) }}
	}
	return nil
}

// ReadPrincipal reads a credentials file. Its errors have the kind Invalid.
func ReadPrincipal(file string) (p proof.Principal, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, messages.Errorf(messages.Invalid, "credentials: %v", err)
	}
	unreadable := func(err error) (proof.Principal, error) {
		return p, messages.Errorf(messages.Invalid, "credentials %s: is no credentials file; \"candor user add\" makes such a file (%v)", file, err)
	}
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return unreadable(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return unreadable(err)
	}
	if p.Token, err = nkeys.ParseDecoratedJWT(text); err != nil {
		return unreadable(err)
	}
	p.Seed = string(seed)
	return p, nil
}

func (i *Identity) now() messages.Time {
	if i.Clock != nil {
		return i.Clock()
	}
	return messages.TimeOf(time.Now())
}

// The method at returns the present time at the bank of a site. It takes the time of this clock, and adds the
// difference between the bank's clock and this clock in the latest measurement.
func (i *Identity) at(site messages.Name) messages.Time {
	ahead, _ := i.ahead.Load(site)
	by, _ := ahead.(messages.Duration)
	return i.now().Add(by)
}

// heard is called when a bank has refused a signature because of its time. It stores how far the bank's clock is ahead
// of the clock of this process.
func (i *Identity) heard(subject string, refusal error) {
	site, _, _, wants := proof.Wants(subject)
	if now, is := proof.Mistimed(refusal); is && wants && i != nil {
		i.ahead.Store(site, now.Sub(i.now()))
	}
}

// sign returns the proof for a request; nil if the site's bank requires none.
func (i *Identity) sign(subject string, payload []byte) (*messages.Proof, error) {
	site, verb, caller, wants := proof.Wants(subject)
	if i == nil || !wants {
		return nil, nil
	}
	p, err := i.Principal()
	if err != nil {
		return nil, err
	}
	signed, err := p.Sign(site, verb, caller, i.at(site), payload)
	return &signed, err
}

// A mark is a short proof of who asked for a transfer. It is made with the keys of a session with the bank. The method
// mark adds one to each transfer in a request, and opens a session if there is none. If the bank requires no proofs,
// the request stays unchanged.
func (i *Identity) mark(ctx context.Context, b Bus, subject string, r money.TransferRequest) (money.TransferRequest, error) {
	site, caller, ok := proof.OfTransfers(subject)
	if !ok {
		return r, nil
	}
	s, err := i.session(ctx, b, site, caller)
	if err != nil || s == nil || s.number == 0 {
		return r, err
	}
	marker := s.markers.Get().(*proof.Marker)
	defer s.markers.Put(marker)
	r.Proof = &messages.TransferProof{Session: s.number, Marks: marker.Transfers(r.Transfers)}
	return r, nil
}

// forget removes the session with a number, so that the next request asks the bank again. A session that was opened
// meanwhile stays.
func (i *Identity) forget(subject string, number uint64) {
	site, _, _ := proof.OfTransfers(subject)
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.sessions[site]; s != nil && s.number == number {
		delete(i.sessions, site)
	}
}

// session returns the open session at a site, or opens one. Other requests that need it wait meanwhile.
func (i *Identity) session(ctx context.Context, b Bus, site, caller messages.Name) (*session, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.sessions[site]; s != nil && (s.number == 0 || i.at(site) < s.expires.Add(-renewBefore)) {
		return s, nil
	}
	s, err := i.open(ctx, b, site, caller)
	if err != nil {
		return nil, err
	}
	if i.sessions == nil {
		i.sessions = map[messages.Name]*session{}
	}
	if s != nil {
		i.sessions[site] = s
	}
	return s, nil
}

// A session is replaced by a new session shortly before it ends. renewBefore is the time between the replacement and
// the end.
const renewBefore = messages.Duration(10 * time.Minute)

// open opens a session; it returns nil if the bank does not answer.
func (i *Identity) open(ctx context.Context, b Bus, site, caller messages.Name) (*session, error) {
	ask := func(verb string, request, reply any) error {
		payload, err := wire.Marshal(request, wire.Msgpack)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		data, err := b.Request(ctx, messages.Subject(site, messages.Bank, verb, caller), payload)
		if err != nil {
			return err
		}
		return wire.UnmarshalReply(data, reply)
	}
	var trust messages.TrustReply
	if err := ask(messages.VerbTrust, messages.Empty{}, &trust); err != nil {
		return nil, nil // the error of the transfer itself will say more
	}
	if !trust.Proven {
		return &session{}, nil
	}
	principal, err := i.Principal()
	if err != nil {
		return nil, err
	}
	if err := proof.CheckExchange(principal.Token, site, &trust); err != nil {
		return nil, err
	}
	own, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "key of a session: %v", err)
	}
	public := own.PublicKey().Bytes()
	var opened messages.SessionReply
	err = ask(messages.VerbSession, messages.SessionRequest{Key: public}, &opened)
	if err != nil && messages.KindOf(err).Retriable() {
		return nil, messages.Errorf(messages.NotLeader, "the bank of site %q opened no session for the request, which was not sent: %v", site, err)
	}
	if err != nil {
		return nil, err
	}
	secret, err := proof.Agree(site, own, trust.Exchange, public, trust.Exchange)
	if err != nil {
		return nil, err
	}
	s := &session{number: opened.Session, expires: opened.Expires}
	s.markers.New = func() any { return proof.NewMarker(secret) }
	return s, nil
}

type askedKey struct{}

// Asked returns the signed request that a handler is answering; nil if it came without a proof.
func Asked(ctx context.Context) *messages.SignedRequest {
	r, _ := ctx.Value(askedKey{}).(*messages.SignedRequest)
	return r
}

// WithAsked returns a context from which [Asked] returns r.
func WithAsked(ctx context.Context, r *messages.SignedRequest) context.Context {
	return context.WithValue(ctx, askedKey{}, r)
}

// provenTries is how many times a request is proven again after the bank refused it as Unproven. There are several
// reasons for such a refusal. The session may have ended, or the bank may now require proofs. After the rotation of a
// key, the bank may need two seconds to know the new key.
const provenTries = 8

// encoder returns a function that encodes the request for each attempt. If the bank refused an attempt as Unproven, the
// function begins a new session, and makes new marks for the transfers.
func encoder(b Bus, subject string, request any) func(context.Context, bool) ([]byte, error) {
	identity := identityOf(b)
	r, is := request.(money.TransferRequest)
	if _, _, ofBank := proof.OfTransfers(subject); !is || !ofBank || identity == nil {
		payload, err := wire.Marshal(request, wire.Msgpack)
		return func(context.Context, bool) ([]byte, error) { return payload, err }
	}
	var number uint64
	return func(ctx context.Context, unproven bool) ([]byte, error) {
		if unproven {
			identity.forget(subject, number)
		}
		marked, err := identity.mark(ctx, b, subject, r)
		if err != nil {
			return nil, err
		}
		if number = 0; marked.Proof != nil {
			number = marked.Proof.Session
		}
		return wire.Marshal(marked, wire.Msgpack)
	}
}
