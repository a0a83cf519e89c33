package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/durable"
)

// Join gets the credentials of a token's node, and writes them to a file that only its owner can read. Before this, it
// writes the node's key next to this file. So an agent that was stopped in between can ask again with the same key. If
// the argument `server` is not "", it replaces the URLs of the token.
func Join(ctx context.Context, t *Token, server, file string) error {
	return join(ctx, t, server, file, messages.TimeOf(time.Now()))
}

func join(ctx context.Context, t *Token, server, file string, now messages.Time) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	waiting := file + ".joining"
	pair, err := ownKey(waiting)
	if err != nil {
		return err
	}
	creds, err := t.enrol(ctx, server, pair)
	// The site decides whether the token has expired, because the clock of this machine may be wrong.
	if ends := t.expires(); messages.KindOf(err) == messages.PermissionDenied && ends != 0 && ends <= now {
		return messages.Errorf(messages.Expired, "join token %s expired at %v, by the clock of this machine: %s; ask the site's operator for another", t.ID, ends, messages.Detail(err))
	}
	if err != nil {
		return err
	}
	if err := create(file, creds); err != nil {
		return err
	}
	return os.Remove(waiting)
}

// ownKey reads the key that an earlier attempt to join has left. If there is none, it makes a key.
func ownKey(file string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(file)
	if err == nil {
		return nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("joining: %w", err)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("joining: making a key: %w", err)
	}
	if seed, err = pair.Seed(); err != nil {
		return nil, fmt.Errorf("joining: making a key: %w", err)
	}
	return pair, create(file, append(seed, '\n'))
}

func create(file string, data []byte) error {
	if err := durable.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	return nil
}

// enrol sends the token and the public key to a server of the site, and returns the credentials for the key.
func (t *Token) enrol(ctx context.Context, server string, pair nkeys.KeyPair) ([]byte, error) {
	key, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("joining: %w", err)
	}
	b, err := t.connect(server)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	subject := messages.Subject(t.Site, messages.Admission, messages.VerbEnrol, messages.ServiceIdentity(t.ID))
	reply, err := bus.Call[messages.EnrolReply](ctx, b, subject, messages.EnrolRequest{Key: key})
	if err != nil {
		return nil, err
	}
	claims, err := jwt.DecodeUserClaims(reply.Claim)
	if err != nil || claims.Subject != key || claims.Name != t.Node {
		return nil, messages.Errorf(messages.Internal, "site %s answered with a claim that is not for node %s and its key", t.Site, t.Node)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, fmt.Errorf("joining: %w", err)
	}
	return jwt.FormatUserConfig(reply.Claim, seed)
}

func (t *Token) connect(server string) (bus.Bus, error) {
	c := bus.Config{URL: server, Name: messages.ServiceIdentity(t.ID), JWT: t.Claim, Seed: t.Seed}
	if server == "" {
		c.URL = strings.Join(t.Servers, ",")
	}
	if t.CA != "" {
		c.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
		if !c.TLS.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, messages.Errorf(messages.Invalid, "the join token holds no certificate in PEM; copy the whole token")
		}
	}
	b, err := bus.Connect(c)
	if messages.KindOf(err) == messages.PermissionDenied {
		return nil, messages.Errorf(messages.PermissionDenied, "site %s does not accept join token %s: the token has expired, was altered, or belongs to another site; ask the operator for another token", t.Site, t.ID)
	}
	return b, err
}
