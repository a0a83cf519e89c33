package identity

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
)

// Secure makes a NATS server admit the credentials of this authority and, as
// leaf nodes, those of the peers that it invited, and nobody else: it sets the
// trusted operator, the system account, and a resolver that holds the claims of
// all accounts.
func (a *Authority) Secure(o *server.Options, peers ...messages.Name) error {
	tokens, err := a.Tokens(peers...)
	if err != nil {
		return err
	}
	for _, token := range tokens.Operators {
		operator, err := jwt.DecodeOperatorClaims(token)
		if err != nil {
			return fmt.Errorf("operator %s: %w", a.site, err)
		}
		o.TrustedOperators = append(o.TrustedOperators, operator)
	}
	resolver := &server.MemAccResolver{}
	for _, t := range tokens.Accounts {
		if err := resolver.Store(t.Key, t.Token); err != nil {
			return fmt.Errorf("storing account %s: %w", t.Name, err)
		}
	}
	o.SystemAccount = publicKey(a.held.Load().system)
	o.AccountResolver = resolver
	return nil
}

// Refresh has a running server go by the keys as they are now: signers, peers and
// revocations. Connections that it would admit no more are cut. o are the options
// that Secure made, with which the server was started: it trusts the operator of
// that time until it is started again.
func (a *Authority) Refresh(s *server.Server, o *server.Options, peers ...messages.Name) error {
	k := a.held.Load()
	signer, err := k.trusted(o.TrustedOperators[0].Subject)
	if err != nil {
		return err
	}
	tokens, err := k.tokens(signer, peers)
	if err != nil {
		return err
	}
	for _, t := range tokens.Accounts { // all of them first, for they name one another
		if err := o.AccountResolver.Store(t.Key, t.Token); err != nil {
			return fmt.Errorf("storing account %s: %w", t.Name, err)
		}
	}
	for _, t := range tokens.Accounts {
		claims, err := jwt.DecodeAccountClaims(t.Token)
		if err != nil {
			return fmt.Errorf("account %s: %w", t.Name, err)
		}
		account, err := s.LookupAccount(t.Key)
		if err != nil {
			return fmt.Errorf("account %s: %w", t.Name, err)
		}
		s.UpdateAccountClaims(account, claims)
	}
	return nil
}

// trusted is the operator's key, or the one before it, with a public key.
func (k *keys) trusted(public string) (nkeys.KeyPair, error) {
	for _, pair := range []nkeys.KeyPair{k.operator, k.oldOperator} {
		if pair != nil && publicKey(pair) == public {
			return pair, nil
		}
	}
	return nil, messages.Errorf(messages.Conflict, "the operator's key was rotated twice since this server started; start it again")
}

func (k *keys) systemClaims() *jwt.AccountClaims {
	claims := jwt.NewAccountClaims(publicKey(k.system))
	claims.Name = "SYS"
	return claims
}

// accountClaims describes CANDOR: JetStream without bounds of its own (the
// disk is bounded by the server), no bearer tokens, and a scope for each role.
func (k *keys) accountClaims() *jwt.AccountClaims {
	claims := jwt.NewAccountClaims(k.name)
	claims.Name = Account
	claims.Limits.DisallowBearer = true
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	for _, role := range signed {
		for _, signer := range k.ofRole(role) {
			claims.SigningKeys.AddScopedSigner(k.scope(role, publicKey(signer)))
		}
	}
	claims.Revocations = k.revoked.list
	return claims
}

func (k *keys) scope(role Role, key string) *jwt.UserScope {
	scope := jwt.NewUserScope()
	scope.Key = key
	scope.Role = string(role)
	scope.Template.Permissions = permissions(role, k.site)
	scope.Template.NatsLimits = limits(role)
	// Not as a leaf node: the listener for those is for the servers of peers.
	scope.Template.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess)
	return scope
}

// Internal is the authority of the ports between the site's hosts: it follows from
// the system account's key, of which only signatures ever leave the process.
func (a *Authority) Internal() (*certificate.Internal, error) {
	signature, err := a.held.Load().system.Sign([]byte("candor certificates between the hosts of " + messages.Name(a.site)))
	if err != nil {
		return nil, fmt.Errorf("deriving the authority of the hosts: %w", err)
	}
	return certificate.NewInternal(a.site, [32]byte(signature[:32]))
}

// RouteSecret is what the servers of the site's cluster prove to one another,
// so that only holders of its keys join: derived from the system account's
// key, of which only signatures ever leave the process.
func (a *Authority) RouteSecret() (string, error) {
	signature, err := a.held.Load().system.Sign([]byte("candor cluster routes of " + messages.Name(a.site)))
	if err != nil {
		return "", fmt.Errorf("deriving the cluster's secret: %w", err)
	}
	return fmt.Sprintf("%x", signature[:32]), nil
}
