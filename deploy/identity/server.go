package identity

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
)

// Secure makes a NATS server admit the credentials of this authority and
// nobody else: it sets the trusted operator, the system account, and a
// resolver that holds the claims of both accounts.
func (a *Authority) Secure(o *server.Options) error {
	operator, err := a.operatorClaims()
	if err != nil {
		return err
	}
	resolver := &server.MemAccResolver{}
	for _, claims := range []*jwt.AccountClaims{a.systemClaims(), a.accountClaims()} {
		token, err := claims.Encode(a.operator)
		if err != nil {
			return fmt.Errorf("signing account %s: %w", claims.Name, err)
		}
		if err := resolver.Store(claims.Subject, token); err != nil {
			return fmt.Errorf("storing account %s: %w", claims.Name, err)
		}
	}
	o.TrustedOperators = []*jwt.OperatorClaims{operator}
	o.SystemAccount = publicKey(a.system)
	o.AccountResolver = resolver
	return nil
}

func (a *Authority) operatorClaims() (*jwt.OperatorClaims, error) {
	claims := jwt.NewOperatorClaims(publicKey(a.operator))
	claims.Name = a.site
	claims.SystemAccount = publicKey(a.system)
	token, err := claims.Encode(a.operator)
	if err != nil {
		return nil, fmt.Errorf("signing operator %s: %w", a.site, err)
	}
	return jwt.DecodeOperatorClaims(token)
}

func (a *Authority) systemClaims() *jwt.AccountClaims {
	claims := jwt.NewAccountClaims(publicKey(a.system))
	claims.Name = "SYS"
	return claims
}

// accountClaims describes CANDOR: JetStream without bounds of its own (the
// disk is bounded by the server), no bearer tokens, and a scope for each role.
func (a *Authority) accountClaims() *jwt.AccountClaims {
	claims := jwt.NewAccountClaims(publicKey(a.account))
	claims.Name = Account
	claims.Limits.DisallowBearer = true
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	for _, role := range signed {
		claims.SigningKeys.AddScopedSigner(a.scope(role))
	}
	return claims
}

func (a *Authority) scope(role Role) *jwt.UserScope {
	scope := jwt.NewUserScope()
	scope.Key = publicKey(a.signers[role])
	scope.Role = string(role)
	scope.Template.Permissions = permissions(role, a.site)
	return scope
}

// RouteSecret is what the servers of the site's cluster prove to one another,
// so that only holders of its keys join: derived from the system account's
// key, of which only signatures ever leave the process.
func (a *Authority) RouteSecret() (string, error) {
	signature, err := a.system.Sign([]byte("candor cluster routes of " + messages.Name(a.site)))
	if err != nil {
		return "", fmt.Errorf("deriving the cluster's secret: %w", err)
	}
	return fmt.Sprintf("%x", signature[:32]), nil
}
