// Package natsserver gives NATS servers the keys of a site, when they start and whenever
// the keys change. It is apart from package identity, so that a program
// that only reads credentials links no server.
package natsserver

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Secure makes a NATS server admit the credentials of an authority and, as
// leaf nodes, those of the peers that it invited, and nobody else: it sets the
// trusted operator, the system account, and a resolver that holds the claims of
// all accounts.
func Secure(o *server.Options, a *identity.Authority, peers ...messages.Name) error {
	tokens, err := a.Tokens(peers...)
	if err != nil {
		return err
	}
	for _, token := range tokens.Operators {
		operator, err := jwt.DecodeOperatorClaims(token)
		if err != nil {
			return fmt.Errorf("operator %s: %w", a.Site(), err)
		}
		o.TrustedOperators = append(o.TrustedOperators, operator)
	}
	o.SystemAccount = tokens.Accounts[0].Key
	o.AccountResolver = &server.MemAccResolver{}
	return store(o, tokens.Accounts)
}

// store has the resolver hold the claims of accounts.
func store(o *server.Options, accounts []identity.Token) error {
	for _, t := range accounts {
		if err := o.AccountResolver.Store(t.Key, t.Token); err != nil {
			return fmt.Errorf("storing account %s: %w", t.Name, err)
		}
	}
	return nil
}

// Refresh has a running server go by the keys as they are now: signers, peers and
// revocations. Connections that it would admit no more are cut. o are the options
// that Secure made, with which the server was started: it trusts the operator of
// that time until it is started again.
func Refresh(s *server.Server, o *server.Options, a *identity.Authority, peers ...messages.Name) error {
	tokens, err := a.TokensOf(o.TrustedOperators[0].Subject, peers...)
	if err != nil {
		return err
	}
	if err := store(o, tokens.Accounts); err != nil { // all of them first, for they name one another
		return err
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
