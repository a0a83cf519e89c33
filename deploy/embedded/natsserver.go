package embedded

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/messages"
)

const (
	// maxPayload is the size of the largest message in bytes. The complete vector of a market with hundreds of
	// thousands of jobs fits in it. NATS recommends no larger messages.
	maxPayload = 8 << 20
	// serverStart is the longest time for the start of the server. It is long because JetStream may recover a large
	// stream.
	serverStart = 30 * time.Second
	// authTimeout is how long a client may take to identify itself, in seconds. It is long, because thousands of agents
	// may connect again at once and keep the server busy.
	authTimeout = 10
	// The other hosts' servers notice within routePing·(1+routePings) that a host is cut off or hangs. Until then,
	// requests for a new leader may still go to the old one.
	routePing  = 250 * time.Millisecond
	routePings = 3
	// storeLimit is larger than any disk, so that only the disk limits the store.
	storeLimit = 1 << 50
	// routeTLS is the longest time for a TLS handshake between the servers of two hosts, in seconds.
	routeTLS = 5
)

// startServer starts the NATS server of this process, and writes the server's ports into the options.
func startServer(o *server.Options, log *zap.Logger, counts prometheus.Registerer) (*server.Server, error) {
	if err := free("NATS server", "--listen", o.Host, o.Port); err != nil {
		return nil, err
	}
	if o.LeafNode.Port != 0 {
		if err := free("NATS server", "--listen", o.LeafNode.Host, o.LeafNode.Port); err != nil {
			return nil, err
		}
	}
	lines := &natsLog{log: log.Named("nats").Sugar(), refused: newRefusals(counts), fatal: make(chan string, 1), quiet: time.Now().Add(settleWithin)}
	s, err := begin(o, lines)
	if err == nil {
		return s, nil
	}
	aside, moved := setMetaAside(o, err)
	if !moved {
		return nil, err
	}
	log.Warn("JetStream did not start; the cluster data of this host was moved aside, and is copied again from the other hosts", zap.String("to", aside), zap.Error(err))
	o.TrustedKeys = nil // the server has computed this field from TrustedOperators
	return begin(o, lines)
}

func begin(o *server.Options, lines *natsLog) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s.SetLoggerV2(lines, false, false, false)
	go s.Start()
	ready := make(chan bool, 1)
	go func() { ready <- s.ReadyForConnections(serverStart) }()
	select {
	case ok := <-ready:
		if ok {
			return s, nil
		}
		err = fmt.Errorf("NATS server: did not begin to listen within %v; its log says why", serverStart)
	case why := <-lines.fatal:
		err = fmt.Errorf("NATS server: %s", why)
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil, err
}

// mostConnections returns how many connections the server may have: at most half of the files that this process may
// open. Everybody who reaches the port can open connections, but replicas end the process if they cannot open a file.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return server.DEFAULT_MAX_CONNECTIONS
	}
	return int(min(files.Cur/2, server.DEFAULT_MAX_CONNECTIONS))
}

func serverOptions(c *Config, self *Host, authority *identity.Authority) (*server.Options, error) {
	o := &server.Options{
		NoSigs:     true, // the process handles the signals
		MaxPayload: maxPayload,
		JetStream:  true,
		StoreDir:   filepath.Join(c.State, "nats"),
		// Each stream reserves its largest size. Without JetStreamMaxStore, all streams together could reserve only
		// three quarters of the space that is free when the server starts.
		JetStreamMaxStore: storeLimit,
		// Each write is synced, so a power failure loses no file that the depot has confirmed.
		SyncAlways: true,
		ServerName: c.Site,
		// A cut between hosts is noticed within PingInterval·MaxPingsOut.
		PingInterval: 10 * time.Second,
		MaxPingsOut:  2,
		AuthTimeout:  authTimeout,
		MaxConn:      mostConnections(),
	}
	listen := c.Listen
	if self != nil {
		listen = self.Listen
		o.ServerName = ServerName(c.Site, self.Name)
	}
	var err error
	if o.Host, o.Port, err = split(listen); err != nil {
		return nil, err
	}
	if err := natsserver.Secure(o, authority, c.peerNames()...); err != nil {
		return nil, err
	}
	if err := secureClients(o, c.TLS); err != nil {
		return nil, err
	}
	if self != nil {
		if err := joinCluster(o, c, self, authority); err != nil {
			return nil, err
		}
	}
	return o, link(o, c, self, authority)
}

// ServerName returns the name of a host's NATS server.
func ServerName(site, host messages.Name) string { return site + "-" + host }

func joinCluster(o *server.Options, c *Config, self *Host, authority *identity.Authority) error {
	secret, err := authority.RouteSecret()
	if err != nil {
		return err
	}
	internal, err := authority.Internal()
	if err != nil {
		return err
	}
	o.Cluster.Name = c.Site
	// Servers of the site prove themselves to each other with certificates that are made only for this purpose.
	// Certificates of clients and peers are refused.
	o.Cluster.TLSConfig, o.Cluster.TLSTimeout = internal.Server(self.Name), routeTLS
	o.Cluster.Username, o.Cluster.Password = c.Site, secret
	if o.Cluster.Host, o.Cluster.Port, err = split(self.Cluster); err != nil {
		return err
	}
	// The interval between pings is short, because requests go to the services of a lost host until its loss is
	// noticed.
	o.Cluster.PingInterval, o.Cluster.MaxPingsOut = routePing, routePings
	// Each pair of servers has one connection for all accounts. With three servers, a connection for each account would
	// cost more than it gains.
	o.Cluster.PoolSize = -1
	// While a host cannot be reached, the log says so twice a minute, instead of once an hour.
	o.ConnectErrorReports = 30
	for _, h := range c.Hosts {
		if h.Name != self.Name {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: h.Cluster, User: url.UserPassword(c.Site, secret)})
		}
	}
	return nil
}

// free returns an error that names the setting if an address cannot be listened on. The server itself would only log
// the error.
func free(what, setting, host string, port int) error {
	if port == server.RANDOM_PORT {
		port = 0
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return messages.Errorf(messages.Conflict, "%s: %v; name another address with %s", what, err, setting)
	}
	return listener.Close()
}

// split splits an address into host and port. If the port is 0, split returns server.RANDOM_PORT in its place: the
// server then chooses a free port.
func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", address, err)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}
