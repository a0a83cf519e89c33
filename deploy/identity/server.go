package identity

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
)

// trusted returns the operator's key that belongs to the given public key. The operator has a current key and, after a
// rotation, an earlier key.
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

// accountClaims returns the claims of the NATS account CANDOR: JetStream without limits (the server limits the disk),
// no bearer tokens, and a scope for each role.
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
	// Leaf nodes are not allowed, because their port is only for the servers of peers.
	scope.Template.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess)
	return scope
}

// Internal returns the authority for the ports between the site's hosts. The key of the system account signs a text,
// and the authority is derived from this signature. The signature stays in this process.
func (a *Authority) Internal() (*certificate.Internal, error) {
	signature, err := a.held.Load().system.Sign([]byte("candor certificates between the hosts of " + messages.Name(a.site)))
	if err != nil {
		return nil, fmt.Errorf("deriving the authority of the hosts: %w", err)
	}
	return certificate.NewInternal(a.site, [32]byte(signature[:32]))
}

// RouteSecret returns the secret with which the servers of the site's cluster prove that they have the site's keys. It
// is derived from a signature by the system account's key, which never leaves the process.
func (a *Authority) RouteSecret() (string, error) {
	signature, err := a.held.Load().system.Sign([]byte("candor cluster routes of " + messages.Name(a.site)))
	if err != nil {
		return "", fmt.Errorf("deriving the cluster's secret: %w", err)
	}
	return fmt.Sprintf("%x", signature[:32]), nil
}
