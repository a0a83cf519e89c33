package bus

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	proving "github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// settleTimeout bounds how long Subscribe and Serve wait for the server's confirmation.
const settleTimeout = 2 * time.Second

type natsBus struct {
	name     messages.Name
	conn     *nats.Conn
	js       jetstream.JetStream
	replicas int
	log      *zap.Logger
	sampled  *zap.Logger // log that writes equal lines at most once a second
	metrics  *metrics
	proves   *Identity // nil if there are no credentials
	watch    watch
	answers  answers
	remote   bool          // the server is in another process
	looking  atomic.Bool   // true while the method look checks the connection
	leaving  leaving       // used only by the method look
	received atomic.Int64  // bytes received from a server in another process
	ended    chan struct{} // closed when the connection is closed
	refusal  atomic.Pointer[messages.Error]
	barred   atomic.Pointer[messages.Error] // set while the servers refuse the credentials, if the bus is personal
	refusals atomic.Int64                   // how often a server refused the credentials since the last connection was made
	personal bool
	proxied  proxied
	nodes    proxied     // requests to nodes that wait for an answer
	renewing sync.Mutex  // locked while the connection is renewed; see unsubscribed
	told     atomic.Bool // whether a message that expects no answer was sent
	streams  sync.Map    // open streams by key; a stream that fails is removed
	subscriptions
}

// Connect returns a bus over NATS. It restores a broken connection in the background, however long this takes.
// Meanwhile, sending returns Unavailable.
func Connect(c Config) (Bus, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := &natsBus{name: c.Name, log: c.Log, replicas: max(1, c.StreamReplicas), ended: make(chan struct{}), personal: c.Personal}
	b.log = cmp.Or(b.log, zap.NewNop())
	b.sampled = Bounded(b.log, 1)
	b.remote = c.InProcess == nil
	b.proves = principalOf(&c)
	var err error
	if b.metrics, err = newMetrics(c.Metrics); err != nil {
		return nil, err
	}
	if b.conn, err = nats.Connect(c.URL, b.options(&c)...); err != nil && c.Retry {
		b.log.Warn("cannot connect; will try again", zap.Error(err))
		b.conn, err = nats.Connect(c.URL, append(b.options(&c), nats.RetryOnFailedConnect(true))...)
	}
	if err != nil {
		return nil, connectError(c.URL, err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		b.conn.Close()
		return nil, messages.Errorf(messages.Internal, "bus: %v", err)
	}
	if err := b.hearRefusals(); err != nil {
		b.conn.Close()
		return nil, messages.Errorf(messages.Unavailable, "bus: %v", err)
	}
	return b, nil
}

// refuses reports whether a server has refused the credentials.
func refuses(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked)
}

func connectError(url string, err error) error {
	if refuses(err) {
		return messages.Errorf(messages.PermissionDenied, "NATS at %s refuses these credentials: %v", clip(url), err)
	}
	if messages.KindOf(err) == messages.Invalid { // the file of the credentials cannot be read
		return err
	}
	return unconnected{messages.Errorf(messages.Unavailable, "cannot connect to NATS at %s: %v", clip(url), err), err}
}

func (b *natsBus) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	if errors.Is(err, nats.ErrPermissionViolation) {
		b.metrics.denied.Inc()
		b.watch.denied(err)
	} else if errors.Is(err, nats.ErrSlowConsumer) {
		b.metrics.slow.Inc()
	} else {
		b.metrics.errors.Inc()
	}
	// The first refusal may only mean that the credentials of this connection have expired. The next connection may
	// have new ones.
	if b.personal && refuses(err) && b.refusals.Add(1) > 1 {
		b.barred.Store(messages.Errorf(messages.PermissionDenied,
			"the site no longer accepts the credentials of %s: they were revoked, or are no longer valid; ask an operator of the site for new ones (candor user add %[1]s)", b.name))
	}
	b.log.Warn("bus error", zap.String("subject", subject), zap.Error(err))
}

func (b *natsBus) onDisconnect(_ *nats.Conn, err error) {
	b.watch.end(connectionLost()) // answers that were on their way may be lost
	if err != nil {
		b.log.Warn("bus connection lost", zap.Error(err))
	}
}

func (b *natsBus) onReconnect(conn *nats.Conn) {
	b.refusals.Store(0)
	b.barred.Store(nil)
	b.metrics.reconnects.Inc()
	b.log.Info("bus connection restored", zap.String("server", conn.ConnectedUrlRedacted()))
}

// Publish implements [Bus].
func (b *natsBus) Publish(subject string, payload []byte) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	if err := b.refused(); err != nil {
		return err
	}
	b.told.Store(true)
	return sendError(subject, b.conn.Publish(subject, payload))
}

func sendError(subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return messages.Errorf(messages.TooLarge, "message to %s is larger than the NATS server accepts; ask for less, or raise max_payload of the server", clip(subject))
	case errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining):
		return errClosed()
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return unserved{refusal: messages.Errorf(messages.Unavailable, "there is no connection to NATS now, so nothing was sent to %s; ask again", clip(subject))}
	}
	return messages.Errorf(messages.Unavailable, "cannot send to %s: %v", clip(subject), err)
}

// Request implements [Bus].
func (b *natsBus) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	if err := checkSubject(subject); err != nil {
		return nil, err
	}
	ctx, unwatch := b.watch.begin(ctx, subject)
	defer unwatch()
	if err := b.refused(); err != nil { // checked after begin, so that no refusal is missed
		return nil, err
	}
	if b.conn.IsClosed() {
		return nil, unserved{refusal: errClosed()}
	}
	proof, err := b.proves.sign(subject, payload)
	if err != nil {
		return nil, err
	}
	out := &nats.Msg{Subject: subject, Data: payload}
	if proof != nil {
		value, err := proving.EncodeHeader(proof)
		if err != nil {
			return nil, err
		}
		out.Header = nats.Header{proving.Header: {value}}
	}
	m, err := b.ask(ctx, out)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
			go b.look(subject)
		}
		return nil, requestError(ctx, subject, err)
	}
	data, err := readReply(m)
	b.proves.heard(subject, err)
	return data, err
}

// ask sends a request and waits for the answer. A service that asks in a user's name gets the answer in that user's
// inbox. NATS permissions let the service listen there, but let no node publish to it.
func (b *natsBus) ask(ctx context.Context, out *nats.Msg) (*nats.Msg, error) {
	caller, prefix := messages.Caller(out.Subject), messages.ReplyPrefix(out.Subject)
	inInbox, isService := prefix == messages.InboxPrefix(caller), strings.HasPrefix(b.name, "$")
	if inInbox && (caller == b.name || !isService) {
		return b.conn.RequestMsgWithContext(ctx, out)
	}
	if inInbox {
		return b.proxied.ask(ctx, b.conn, out, prefix, "*")
	}
	if isService {
		caller = "*"
	}
	return b.nodes.ask(ctx, b.conn, out, prefix, messages.LogsReplyPrefix("*", caller))
}

func (b *natsBus) identity() *Identity { return b.proves }

func (b *natsBus) answerTimes() *answers { return &b.answers }

func requestError(ctx context.Context, subject string, err error) error {
	var denial *messages.Error
	switch {
	case errors.As(context.Cause(ctx), &denial):
		return denial
	case errors.Is(err, nats.ErrNoResponders):
		return nobody(subject)
	case ctx.Err() != nil:
		return noAnswer(ctx, subject)
	}
	return sendError(subject, err)
}

// Subscribe implements [Bus].
func (b *natsBus) Subscribe(pattern string, handle func(string, []byte)) (Subscription, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	if err := b.refused(); err != nil {
		return nil, err
	}
	sub, err := b.conn.Subscribe(pattern, func(m *nats.Msg) { handle(m.Subject, m.Data) })
	if err != nil {
		return nil, sendError(pattern, err)
	}
	done := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(done) })
	s := &subscription{&b.subscriptions, func() error { return sendError(pattern, ignoreClosed(sub.Unsubscribe())) }, done}
	if err := sub.SetPendingLimits(maxPending, maxPendingBytes); err != nil {
		return nil, errors.Join(sendError(pattern, err), s.Stop())
	}
	if err := b.settle(pattern); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return b.register(s)
}

// maxPendingBytes bounds the bytes that wait for a subscriber, as maxPending bounds the messages.
const maxPendingBytes = 64 << 20

// Connected reports whether the bus is connected now.
func (b *natsBus) Connected() bool { return b.conn.IsConnected() }

// settle waits until the server has received a subscription. It returns an error if the server refused the
// subscription. Without a connection settle returns at once: the subscription is made at the next connection.
func (b *natsBus) settle(pattern string) error {
	if !b.conn.IsConnected() {
		return nil
	}
	if err := b.conn.FlushTimeout(settleTimeout); err != nil {
		return nil
	}
	if err := b.conn.LastError(); errors.Is(err, nats.ErrPermissionViolation) && deniedSubject(err) == pattern {
		return deniedListen(pattern)
	}
	return nil
}

// Close implements [Bus].
func (b *natsBus) Close() error {
	again, err := b.stop()
	if again {
		return nil
	}
	if b.told.Load() && b.conn.IsConnected() { // only messages that expect no answer need a flush
		_ = b.conn.FlushTimeout(stopTimeout)
	}
	b.conn.Close()
	waitFor(b.ended, stopTimeout)
	return err
}

func readReply(m *nats.Msg) ([]byte, error) {
	code := m.Header.Get(errorCodeHeader)
	if code == "" {
		return m.Data, nil
	}
	e := new(messages.Error)
	if wire.UnmarshalReply(m.Data, e) == nil && e.Message != "" {
		return nil, e
	}
	_ = e.Kind.UnmarshalText([]byte(code)) // an unknown name becomes Internal
	return nil, &messages.Error{Kind: e.Kind, Message: m.Header.Get(errorHeader)}
}

// headerText makes text fit on a header line.
func headerText(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s))
}
