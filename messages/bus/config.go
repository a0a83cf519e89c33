package bus

import (
	"crypto/tls"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// Config says how to connect to NATS, and has the name of the connection.
type Config struct {
	// URL is one server, or several separated by commas. It is not used with InProcess.
	URL string
	// Name is the account of the credentials. Replies arrive at inboxes under "_INBOX_<name>.", the only subjects to
	// which the connection must listen.
	Name messages.Name
	// CredsFile is a NATS credentials file. It consists of two parts, which can be given as JWT and Seed instead of the
	// file. Without credentials the connection is anonymous.
	CredsFile string
	JWT, Seed string
	// Renew returns the JWT and the seed of the present credentials. It is called each time a connection is made. It is
	// nil if the credentials do not change.
	Renew func() (token, seed string, err error)
	// InProcess connects within this process, for example to a *Server of nats-server.
	InProcess interface{ InProcessConn() (net.Conn, error) }
	TLS       *tls.Config
	// If Retry is true, Connect succeeds although no server answers yet, and keeps trying to connect.
	Retry bool
	// Personal says how requests fail after the servers have refused credentials that they accepted before. If Personal
	// is true, they fail with PermissionDenied. Before that, the connection is tried with the credentials that the file
	// has now, because the old ones may only have expired. If Personal is false, requests fail with Unavailable, so
	// that a service asks again until its credentials are renewed.
	Personal bool
	// StreamReplicas is how many servers store a new stream: 1 to 5, default 1.
	StreamReplicas int
	Log            *zap.Logger // nil means no log
	Metrics        Metrics     // nil means no metrics
}

// Validate returns an error for a missing or contradictory field.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(strings.TrimPrefix(c.Name, "$")):
		return messages.Errorf(messages.Invalid, "bus: name %q: must be an account, or \"$\" and an actor", clip(c.Name))
	case c.URL == "" && c.InProcess == nil:
		return messages.Errorf(messages.Invalid, "bus: give the URL of a NATS server, like nats://127.0.0.1:4222")
	case c.CredsFile != "" && c.JWT != "":
		return messages.Errorf(messages.Invalid, "bus: give a credentials file or a JWT, not both")
	case c.Renew != nil && (c.CredsFile != "" || c.JWT != ""):
		return messages.Errorf(messages.Invalid, "bus: give credentials, or the function Renew, not both")
	case (c.JWT == "") != (c.Seed == ""):
		return messages.Errorf(messages.Invalid, "bus: give both the JWT and its seed, or neither")
	case c.StreamReplicas < 0 || c.StreamReplicas > 5:
		return messages.Errorf(messages.Invalid, "bus: stream replicas %d: must be 1 to 5", c.StreamReplicas)
	}
	if c.CredsFile != "" {
		if _, err := os.Stat(c.CredsFile); err != nil {
			return messages.Errorf(messages.Invalid, "credentials: %v", err)
		}
	}
	return nil
}

// These are the waiting times of a connection. If a link is cut without an error, the connection is closed after at
// most pingInterval·(1+maxPings). A client tries a server again after reconnectWait, plus a random part of
// reconnectJitter. So clients do not all come back at the same time.
const (
	connectTimeout = 5 * time.Second
	pingInterval   = 2 * time.Second
	maxPings       = 2
	// A connection within a process cannot be cut, so it needs few pings.
	inProcessPingInterval = time.Minute
	reconnectWait         = 100 * time.Millisecond
	reconnectJitter       = 900 * time.Millisecond
)

func (b *natsBus) options(c *Config) []nats.Option {
	options := []nats.Option{
		nats.Name(c.Name),
		nats.CustomInboxPrefix(messages.InboxPrefix(c.Name)),
		nats.Timeout(connectTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.ReconnectBufSize(-1), // while there is no connection, sending fails: a later delivery would be too late
		nats.IgnoreAuthErrorAbort(),
		nats.DrainTimeout(stopTimeout),
		nats.ErrorHandler(b.onError),
		nats.DisconnectErrHandler(b.onDisconnect),
		nats.ReconnectHandler(b.onReconnect),
		nats.ClosedHandler(func(*nats.Conn) { close(b.ended) }),
	}
	if b.proves != nil {
		options = append(options, credentials(b.proves.Principal))
	}
	if c.InProcess != nil {
		options = append(options, nats.InProcessServer(c.InProcess), nats.PingInterval(inProcessPingInterval))
	} else {
		options = append(options, nats.SetCustomDialer(dialer{net.Dialer{Timeout: connectTimeout}, &b.received}))
	}
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS))
	}
	return options
}

// credentials makes NATS ask the given function for credentials at each connection. NATS first asks for the claim. Then
// it asks for a signature with the key that the claim names.
func credentials(principal func() (proof.Principal, error)) nats.Option {
	var mu sync.Mutex
	var claimed proof.Principal
	claim := func() (string, error) {
		p, err := principal()
		mu.Lock()
		defer mu.Unlock()
		claimed = p
		return p.Token, err
	}
	sign := func(nonce []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		return claimed.Signature(nonce)
	}
	return nats.UserJWT(claim, sign)
}
