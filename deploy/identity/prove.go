package identity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// proving lists the roles whose credentials prove requests to the bank.
var proving = []Role{User, Operator, Service}

// RoleKeys returns the public keys that sign credentials with which a client proves its requests to the bank. During a
// rotation, a role's earlier key comes first.
func (s signer) RoleKeys() []messages.RoleKey {
	k := s.held.Load()
	var list []messages.RoleKey
	for _, role := range proving {
		for _, signer := range k.ofRole(role) {
			list = append(list, messages.RoleKey{Role: string(role), Key: publicKey(signer)})
		}
	}
	return list
}

// RevokedKeys lists the public keys of names whose credentials were revoked.
func (s signer) RevokedKeys() []string {
	return slices.Sorted(maps.Keys(s.held.Load().revoked.list))
}

// SignAccount signs with the account's present key.
func (s signer) SignAccount(data []byte) ([]byte, error) {
	signature, err := s.held.Load().account.Sign(data)
	if err != nil {
		return nil, fmt.Errorf("signing with the account's key: %w", err)
	}
	return signature, nil
}
