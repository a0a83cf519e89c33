package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/deploy/console/signon"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// checkConsole requires TLS for the console and its WebSocket listener if other machines can reach them, because the
// pages send credentials.
func (c *Config) checkConsole(ps *Problems) {
	for _, door := range []struct{ path, address string }{{"console", c.Console}, {"websocket", c.WebSocket}} {
		if door.address == "" {
			continue
		}
		ps.address(door.path, door.address, true)
		if beyondLoopback(door.address) && c.TLS == nil {
			ps.addf(door.path, "%q is not on loopback, so others could change the pages; set tls (candor site init makes certificates)", clip(door.address))
		}
	}
}

// checkSignOn requires that a site with single sign-on has a console, and checks the rules.
func (c *Config) checkSignOn(ps *Problems) {
	if c.SignOn == nil {
		return
	}
	if c.Console == "" {
		ps.addf("sign_on", "has no effect without a console: give the address of the console in the field console")
	}
	ps.field("sign_on", c.SignOn.Validate())
}

type consoleDoor struct {
	listener net.Listener
	names    []string // host names that browsers may use in requests
	server   *http.Server
	ended    chan error
}

// openConsole listens for browsers. It also configures the NATS server to accept WebSocket connections from the
// console's pages only.
func (s *share) openConsole(o *server.Options) (err error) {
	address := s.config.WebSocket
	if s.config.Console != "" {
		d := &consoleDoor{}
		if d.listener, err = net.Listen("tcp", s.config.Console); err != nil {
			return messages.Errorf(messages.Conflict, "console: %v; name another address with --console", err)
		}
		s.console = d
		if address == "" {
			if address, err = after(s.config.Console); err != nil {
				return err
			}
		}
	}
	if address == "" {
		return nil
	}
	w := &o.Websocket
	if w.Host, w.Port, err = split(address); err != nil {
		return err
	}
	if err := free("websocket", "websocket in the configuration", w.Host, w.Port); err != nil {
		return err
	}
	w.NoTLS, w.AuthTimeout, w.HandshakeTimeout = true, authTimeout, authTimeout*time.Second
	if s.config.TLS != nil {
		t, err := s.config.TLS.load()
		if err != nil {
			return err
		}
		t.ClientAuth = tls.NoClientCert
		w.TLSConfig, w.NoTLS = t, false
	}
	w.AllowedOrigins, err = s.origins(w.TLSConfig)
	return err
}

// after returns the address with the next port. Port 0, which means any free port, stays 0.
func after(address string) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("console: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port == 65535 {
		return "", messages.Errorf(messages.Invalid, "console: no port follows %q; name the address for WebSocket connections in the field websocket", address)
	}
	if port != 0 {
		port++
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// origins returns the origins of pages that may connect. If the site has a console, these are the console's addresses.
// Otherwise it is the address of "candor console" on a user's machine.
func (s *share) origins(t *tls.Config) (all []string, err error) {
	if s.console == nil {
		_, port, _ := net.SplitHostPort(console.DefaultAddress)
		return []string{"http://127.0.0.1:" + port, "http://localhost:" + port}, nil
	}
	if s.console.names, err = consoleNames(s.console.listener.Addr(), t); err != nil {
		return nil, err
	}
	if len(s.console.names) == 0 {
		return nil, messages.Errorf(messages.Invalid, "console: the certificate in tls has no name that browsers can open; make a certificate with the name of the host")
	}
	for _, name := range s.console.names {
		all = append(all, s.consoleURL(name))
	}
	return all, nil
}

// consoleNames returns the host names of the console: the names in the certificate or, without one, the loopback
// address.
func consoleNames(at net.Addr, t *tls.Config) (names []string, err error) {
	ip := at.(*net.TCPAddr).IP
	if !ip.IsUnspecified() {
		names = append(names, ip.String())
	}
	if ip.IsLoopback() {
		names = append(names, "localhost")
	}
	if t == nil {
		return names, nil
	}
	leaf, err := x509.ParseCertificate(t.Certificates[0].Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	for _, name := range leaf.DNSNames {
		names = append(names, strings.ToLower(name))
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names, nil
}

func (s *share) consoleURL(name string) string {
	scheme := "http://"
	if s.config.TLS != nil {
		scheme = "https://"
	}
	_, port, _ := net.SplitHostPort(s.console.listener.Addr().String()) // a TCP address always has a port
	return scheme + net.JoinHostPort(name, port)
}

// serveConsole serves the pages. It must be called after the NATS server has opened its WebSocket listener.
func (s *share) serveConsole(o *server.Options) error {
	w := &o.Websocket
	if w.Port == 0 {
		return nil
	}
	scheme := "ws"
	if w.TLSConfig != nil {
		scheme = "wss"
	}
	at := s.server.WebsocketURL()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(at, scheme+"://"))
	if err != nil {
		return fmt.Errorf("websocket: %q: %w", at, err)
	}
	s.info.WebSocket = at
	d := s.console
	if d == nil {
		return nil
	}
	config := console.Config{Site: s.config.Site, WebSocket: scheme + "://:" + port, Names: d.names, Audits: filepath.Join(s.config.State, console.AuditsDir)}
	if s.config.SignOn != nil {
		if config.SignOn, err = signon.New(signon.Config{Rules: s.config.SignOn, Site: s.config.Site, Operators: s.config.Operators, Lend: s.lend,
			Log: s.log.Named("console")}); err != nil {
			return err
		}
	}
	h, err := console.Handler(config)
	if err != nil {
		return err
	}
	s.info.Console = s.consoleURL(d.names[0])
	listener := d.listener
	if w.TLSConfig != nil {
		listener = tls.NewListener(listener, w.TLSConfig)
	}
	d.server = console.Server(h, zap.NewStdLog(s.log.Named("console")))
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.server.Serve(listener) }()
	return nil
}

// lend makes the credentials of a person who has signed on to the console.
func (s *share) lend(account messages.Name, operator bool) (l signon.Loan, err error) {
	role := identity.User
	if operator {
		role = identity.Operator
	}
	c, expires, err := s.authority.Lend(role, account, "console")
	if err != nil {
		return l, err
	}
	l.Expires = messages.TimeOf(expires)
	l.Creds, err = c.File()
	return l, err
}

// Close implements [io.Closer].
func (d *consoleDoor) Close() error {
	if d.server == nil {
		return d.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = d.server.Close()
	}
	if served := <-d.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
