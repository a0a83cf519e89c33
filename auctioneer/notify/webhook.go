package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// patience is how long a receiver may take to accept one notification.
const patience = 10 * time.Second

// newClient returns a client that follows no redirects, and connects only to allowed addresses.
func (s *Sender) newClient() *http.Client {
	transport := &http.Transport{
		Proxy:             nil, // a proxy would connect to addresses that dial does not check
		DialContext:       s.dial,
		DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 14, TLSHandshakeTimeout: patience,
	}
	return &http.Client{Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// dial connects to one of the host's allowed addresses.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: patience, Control: func(_, to string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if err != nil || !s.rules.reaches(host, at.Addr()) {
			return messages.Errorf(messages.PermissionDenied, "%s has the address %s, which is neither public nor in a network that the site allows", host, to)
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

func (s *Sender) call(ctx context.Context, to string, w *Word) error {
	body, err := wire.Marshal(w, wire.JSON)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return messages.Errorf(messages.Invalid, "%v", err)
	}
	stamp := strconv.FormatInt(s.clock().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "candor")
	r.Header.Set("Candor-Notice", w.ID)
	r.Header.Set("Candor-Timestamp", stamp)
	r.Header.Set("Candor-Signature", "sha256="+sign(s.secret.Of(w.Account), stamp, body))
	reply, err := s.client.Do(r)
	if err != nil {
		return messages.Errorf(kindOf(err), "%v", err)
	}
	defer reply.Body.Close()
	_, _ = io.CopyN(io.Discard, reply.Body, 1<<12)
	switch c := reply.StatusCode; {
	case c/100 == 2:
		return nil
	case c == http.StatusRequestTimeout, c == http.StatusTooManyRequests, c >= 500:
		return messages.Errorf(messages.Unavailable, "the receiver answered %s", reply.Status)
	case c/100 == 3:
		return messages.Errorf(messages.PermissionDenied, "the receiver answered %s: redirects are not followed", reply.Status)
	default:
		return messages.Errorf(messages.PermissionDenied, "the receiver answered %s", reply.Status)
	}
}

// kindOf returns the kind of the error of a webhook's connection. If the site's rules do not permit the address, the
// kind is PermissionDenied, and the notification is not tried again. Otherwise the kind is Unavailable.
func kindOf(err error) messages.Kind {
	if messages.KindOf(err) == messages.PermissionDenied {
		return messages.PermissionDenied
	}
	return messages.Unavailable
}

// Secret is the site's secret. The secrets of accounts are derived from it.
type Secret []byte

// Of returns the secret that signs the webhooks of an account's jobs.
func (s Secret) Of(account messages.Name) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte("candor webhooks of " + account))
	return []byte(hex.EncodeToString(mac.Sum(nil)))
}

// sign returns the signature of a body. It also covers `stamp`, the time at which the body is sent.
func sign(secret []byte, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
