package admission

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Issuer signs claims; an [identity.Authority] is one.
type Issuer interface {
	JoinCredentials(id string, expires time.Time) (identity.Credentials, error)
	Enrol(role identity.Role, n messages.Name, key string) (token string, err error)
	Renew(n messages.Name, token string) (string, error)
	Lend(role identity.Role, n messages.Name, lender string) (identity.Credentials, time.Time, error)
}

// Config configures an [Admission]. Site, Bus, Issuer and Operators are needed.
type Config struct {
	Site      messages.Name
	Bus       bus.Bus // connected as "$admission"
	Issuer    Issuer
	Operators []messages.Name // accounts that may make and revoke tokens
	// A join token tells a new agent how to connect to the site. Servers are the URLs in the token. CA is the
	// certificate, in PEM, with which the agent verifies the servers. It is empty without TLS.
	Servers []string
	CA      string
	Log     *zap.Logger           // nil: nothing is logged
	Metrics prometheus.Registerer // nil: there are no metrics
	Clock   func() messages.Time  // nil: the wall clock
}

// Admission serves requests of operators and of new nodes. It has no state, so a site may have several.
type Admission struct {
	c       Config
	service bus.Subscription
	metrics *metrics
}

// Start begins to serve.
func Start(c Config) (*Admission, error) {
	if !messages.ValidName(c.Site) || c.Bus == nil || c.Issuer == nil || len(c.Operators) == 0 {
		return nil, messages.Errorf(messages.Invalid, "admission: Site, Bus, Issuer and Operators must be set")
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
	c.Log = bus.Bounded(c.Log, maxRefusals)
	a := &Admission{c: c, metrics: newMetrics(c.Metrics)}
	at := func(verb string, handle bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(c.Site, messages.Admission, verb, "*"), Handle: a.counted(handle)}
	}
	var err error
	a.service, err = c.Bus.Serve(bus.Service{
		Name: "candor-admission", Version: "1.0.0", Description: "New nodes and renewed credentials of site " + c.Site, Discoverable: true,
		Endpoints: []bus.Endpoint{
			at(messages.VerbToken, bus.Handle("token", a.token)),
			at(messages.VerbTokens, bus.Handle("tokens", a.tokens)),
			at(messages.VerbForget, bus.Handle("forget", a.forget)),
			at(messages.VerbEnrol, bus.Handle("enrol", a.enrol)),
			at(messages.VerbRenew, bus.Handle("renew", a.renew)),
			at(messages.VerbLend, bus.Handle("lend", a.lend)),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return a, nil
}

// Close ends the service.
func (a *Admission) Close() error { return a.service.Stop() }

// maxRefusals is the largest number of refusals that are logged in a second. All refusals are counted.
const maxRefusals = 10

func (a *Admission) counted(handle bus.Handler) bus.Handler {
	return func(ctx context.Context, r bus.Request) ([]byte, error) {
		reply, err := handle(ctx, r)
		if err != nil {
			a.metrics.refused.WithLabelValues(messages.KindOf(err).String()).Inc()
			a.c.Log.Info("refused", zap.String("subject", r.Subject), zap.Error(err))
		}
		return reply, err
	}
}

// token makes a token, which is in the auctioneer's log before it is returned.
func (a *Admission) token(ctx context.Context, caller messages.Name, r messages.TokenRequest) (reply messages.TokenReply, err error) {
	if err := a.operators(caller); err != nil {
		return reply, err
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	now := a.c.Clock()
	state := messages.TokenState{ID: newID(), Node: r.Node, By: caller, Issued: now, Expires: now.Add(r.Expires)}
	// Credentials state in whole seconds when they expire. So the time is rounded up there. The log has the exact time.
	creds, err := a.c.Issuer.JoinCredentials(state.ID, state.Expires.Std().Add(time.Second))
	if err != nil {
		return reply, err
	}
	if _, err := a.ask(ctx, messages.AdmitRequest{Issue: &state}); err != nil {
		return reply, err
	}
	a.metrics.issued.Inc()
	t := Token{Site: a.c.Site, Node: r.Node, ID: state.ID, Servers: a.c.Servers, CA: a.c.CA, Claim: creds.Token, Seed: creds.Seed}
	return messages.TokenReply{State: state, Token: t.String()}, nil
}

func newID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return messages.JoinPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func (a *Admission) tokens(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.TokensReply, error) {
	if err := a.operators(caller); err != nil {
		return messages.TokensReply{}, err
	}
	return a.ask(ctx, messages.AdmitRequest{})
}

// forget revokes a token. Credentials that were issued for it before stay valid.
func (a *Admission) forget(ctx context.Context, caller messages.Name, r messages.TokenUse) (messages.TokenState, error) {
	if err := a.operators(caller); err != nil {
		return messages.TokenState{}, err
	}
	if r.ID == "" {
		return messages.TokenState{}, messages.Errorf(messages.Invalid, "id: is empty; `candor node tokens` lists the tokens")
	}
	return a.one(ctx, messages.AdmitRequest{Revoke: r.ID})
}

// enrol lets a node join the site. The first node that shows a join token sends its public key, and enrol signs a claim
// for this key.
func (a *Admission) enrol(ctx context.Context, caller messages.Name, r messages.EnrolRequest) (reply messages.EnrolReply, err error) {
	id := strings.TrimPrefix(caller, "$")
	if !strings.HasPrefix(id, messages.JoinPrefix) || id == caller {
		return reply, messages.Errorf(messages.PermissionDenied, "%s holds no join token; an operator makes one with `candor node token`", caller)
	}
	// A key that cannot be signed must not use up the token.
	if _, err := a.c.Issuer.Enrol(identity.Node, "none", r.Key); err != nil {
		return reply, err
	}
	state, err := a.one(ctx, messages.AdmitRequest{Use: &messages.TokenUse{ID: id, Key: r.Key}})
	if err != nil {
		return reply, err
	}
	reply.Node = state.Node
	if reply.Claim, err = a.c.Issuer.Enrol(identity.Node, state.Node, r.Key); err != nil {
		return reply, err
	}
	a.metrics.enrolled.Inc()
	a.c.Log.Info("node enrolled", zap.String("node", state.Node), zap.String("token", id), zap.String("key", r.Key))
	return reply, nil
}

// renew signs a user's claim again. NATS has checked that the caller has the key of the claim.
func (a *Admission) renew(_ context.Context, caller messages.Name, r messages.RenewRequest) (reply messages.RenewReply, err error) {
	if reply.Claim, err = a.c.Issuer.Renew(caller, r.Claim); err == nil {
		a.c.Log.Info("credentials renewed", zap.String("account", caller))
	}
	return reply, err
}

// lend gives a door (a service for the users of a login node) the credentials of a user. The seed is encrypted for the
// door, so that the servers that pass it on do not learn it.
func (a *Admission) lend(_ context.Context, caller messages.Name, r messages.LendRequest) (reply messages.LendReply, err error) {
	door, ok := strings.CutPrefix(caller, "$"+messages.DoorPrefix)
	switch {
	case !ok:
		return reply, messages.Errorf(messages.PermissionDenied, "%s is no door; an operator makes a door with `candor user add --door`", caller)
	case slices.Contains(a.c.Operators, r.Account):
		return reply, messages.Errorf(messages.PermissionDenied, "%s is an operator, but a door gives credentials only to users: name a credentials file with --creds", r.Account)
	}
	c, expires, err := a.c.Issuer.Lend(identity.User, r.Account, door)
	if err != nil {
		return reply, err
	}
	box, err := nkeys.CreateCurveKeys()
	if err != nil {
		return reply, err
	}
	if reply.Seed, err = box.Seal([]byte(c.Seed), r.Box); err != nil {
		return reply, messages.Errorf(messages.Invalid, "box: %v", err)
	}
	if reply.Sender, err = box.PublicKey(); err != nil {
		return reply, err
	}
	reply.Claim, reply.Expires = c.Token, messages.TimeOf(expires)
	a.metrics.lent.Inc()
	a.c.Log.Info("credentials lent", zap.String("account", r.Account), zap.String("door", door))
	return reply, nil
}

func (a *Admission) operators(caller messages.Name) error {
	if !slices.Contains(a.c.Operators, caller) {
		return messages.Errorf(messages.PermissionDenied, "only operators may make, see and revoke join tokens")
	}
	return nil
}

func (a *Admission) ask(ctx context.Context, r messages.AdmitRequest) (messages.TokensReply, error) {
	subject := messages.Subject(a.c.Site, messages.Auctioneer, messages.VerbAdmit, messages.ServiceIdentity(messages.Admission))
	return bus.Call[messages.TokensReply](ctx, a.c.Bus, subject, r)
}

func (a *Admission) one(ctx context.Context, r messages.AdmitRequest) (messages.TokenState, error) {
	reply, err := a.ask(ctx, r)
	if err == nil && len(reply.Tokens) != 1 {
		err = messages.Errorf(messages.Internal, "the auctioneer answered with %d tokens", len(reply.Tokens))
	}
	if err != nil {
		return messages.TokenState{}, err
	}
	return reply.Tokens[0], nil
}

type metrics struct {
	issued, enrolled, lent prometheus.Counter
	refused                *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	with := promauto.With(r)
	m := &metrics{
		issued:   with.NewCounter(prometheus.CounterOpts{Name: "candor_admission_tokens_total", Help: "Join tokens made."}),
		enrolled: with.NewCounter(prometheus.CounterOpts{Name: "candor_admission_enrolments_total", Help: "Claims signed for agents that showed a join token, including repeated requests."}),
		lent:     with.NewCounter(prometheus.CounterOpts{Name: "candor_admission_lent_total", Help: "Credentials of users given to doors."}),
		refused: with.NewCounterVec(prometheus.CounterOpts{Name: "candor_admission_refused_total",
			Help: "Requests refused, by the kind of error."}, []string{"kind"}),
	}
	for _, kind := range messages.Kinds() {
		m.refused.WithLabelValues(kind.String())
	}
	return m
}
