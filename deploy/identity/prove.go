package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// proving are the roles whose credentials prove requests to the bank.
var proving = []Role{User, Operator, Service}

// RoleKeys lists the public keys that sign credentials with which requests to the
// bank are proven; of a role, the one that is good until its rotation ends stands
// before the present one.
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

// SignAccount signs with the key that speaks for the account.
func (s signer) SignAccount(data []byte) ([]byte, error) {
	signature, err := s.held.Load().account.Sign(data)
	if err != nil {
		return nil, fmt.Errorf("signing with the account's key: %w", err)
	}
	return signature, nil
}

// provenFile holds the first record of the bank's journal from which on everything
// is proven, so that no journal without proofs can be put in its place.
const provenFile = "proven"

// ProvenFrom is the record from which on the site's books are proven, 0 if they are
// not.
func (d *directory) ProvenFrom() (uint64, error) {
	path := filepath.Join(d.dir, provenFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("keys directory: %w", err)
	}
	from, err := strconv.ParseUint(trim(text), 10, 64)
	if err != nil {
		return 0, messages.Errorf(messages.Invalid, "keys directory: %s: is not the number of a record; use the number that candor bank verify shows", path)
	}
	return from, nil
}

// KeepProven remembers it.
func (d *directory) KeepProven(from uint64) error {
	return replace(filepath.Join(d.dir, provenFile), []byte(strconv.FormatUint(from, 10)+"\n"))
}
