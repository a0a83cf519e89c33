// Package natsserver gives NATS servers the keys of a site, when they start and when the keys change. It is separate
// from package identity, so that other programs do not link a NATS server.
package natsserver

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Secure makes a NATS server admit only the credentials of an authority and, as leaf nodes, the accounts of invited
// peers. It sets the trusted operator, the system account, and a resolver with the claims of all accounts.
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

func store(o *server.Options, accounts []identity.Token) error {
	for _, t := range accounts {
		if err := o.AccountResolver.Store(t.Key, t.Token); err != nil {
			return fmt.Errorf("storing account %s: %w", t.Name, err)
		}
	}
	return nil
}

// Refresh updates a running server to the current signers, peers and revocations. It closes connections that are no
// longer admitted. The argument `o` must be the options that Secure set at the server's start. A new operator key is
// not loaded: until its next restart, the server trusts the operator's key that it got at its start.
func Refresh(s *server.Server, o *server.Options, a *identity.Authority, peers ...messages.Name) error {
	tokens, err := a.TokensOf(o.TrustedOperators[0].Subject, peers...)
	if err != nil {
		return err
	}
	if err := store(o, tokens.Accounts); err != nil { // store all accounts first, because their claims name each other
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
