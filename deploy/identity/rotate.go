package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/spelling"
)

// These are suffixes of the names of key files during a rotation.
const (
	oldSuffix  = ".old"  // the earlier key, valid until the rotation ends
	nextSuffix = ".next" // the next key
)

// bankFile has the key that signs for the site, if it is not the account's key.
const bankFile = "bank.nk"

// Names of the keys that can be rotated. For roles they are "user-role" and so on.
const (
	OperatorKey = "operator"
	BankKey     = "bank"
	AccountKey  = "account"
)

// Rotatable lists the names of the keys that can be rotated.
func Rotatable() []string {
	names := []string{OperatorKey, BankKey, AccountKey}
	for _, r := range signed {
		names = append(names, string(r)+"-role")
	}
	return names
}

// Rotate begins the rotation of a key: from then on there are an old and a new key. For a role, the new key signs, and
// credentials that either key signed are valid. For the operator, the new key signs the accounts. For the bank and for
// the account, the old key still signs, and Rotate returns the new public key. Before the call of [Authority.Finish],
// the operator must tell this new key to others: the bank's key to the peers, the account's key to the site's hosts.
func (d *directory) Rotate(name string) (public string, err error) {
	file, kind, err := rotating(name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(d.dir, file)
	for _, suffix := range []string{oldSuffix, nextSuffix} {
		if _, err := os.Stat(path + suffix); err == nil {
			return "", messages.Errorf(messages.Conflict, "key %s: the last rotation of this key has not ended; end that rotation with --finish first", name)
		}
	}
	fresh, seed, err := makeKey(kind)
	if err != nil {
		return "", err
	}
	if k := d.held.Load(); name == AccountKey && k.bank == k.account {
		return "", messages.Errorf(messages.Conflict, "the key named account: the bank also signs with this key, and peers know the bank by this key; rotate the bank's key first: candor site rotate bank")
	}
	if name == BankKey || name == AccountKey {
		err = replace(path+nextSuffix, seed)
	} else {
		err = d.supersede(name, path, seed)
	}
	if err != nil {
		return "", err
	}
	return publicKey(fresh), d.Reload()
}

// supersede replaces a key, and keeps the replaced key in a second file. It writes the second file first. If the
// process crashes before it writes the new key, both files have the key that was in use.
func (d *directory) supersede(name, path string, seed []byte) error {
	held := d.held.Load()
	present := held.operator
	if role, ok := strings.CutSuffix(name, "-role"); ok {
		present = held.signers[Role(role)]
	}
	before, err := present.Seed()
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	if err := replace(path+oldSuffix, append(before, '\n')); err != nil {
		return err
	}
	return replace(path, seed)
}

// Finish ends a rotation. For a role or the operator, it deletes the old key, so credentials that it signed are
// refused. For the bank and the account, the new key begins to sign; the account's old key is deleted.
func (d *directory) Finish(name string) error {
	file, _, err := rotating(name)
	if err != nil {
		return err
	}
	path := filepath.Join(d.dir, file)
	if k := d.held.Load(); name == AccountKey && k.successor != nil {
		err = k.retire(d.dir)
	}
	switch {
	case err != nil:
	case name == BankKey || name == AccountKey:
		err = durable.Rename(path+nextSuffix, path)
	default:
		if err = os.Remove(path + oldSuffix); err == nil {
			err = durable.Sync(d.dir)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return messages.Errorf(messages.NotFound, "key %s: no rotation is under way; begin one without --finish", name)
	}
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	return d.Reload()
}

func rotating(name string) (file string, kind nkeys.PrefixByte, err error) {
	switch name {
	case OperatorKey:
		return operatorFile, nkeys.PrefixByteOperator, nil
	case BankKey:
		return bankFile, nkeys.PrefixByteAccount, nil
	case AccountKey:
		return accountFile, nkeys.PrefixByteAccount, nil
	case "system":
		return "", 0, messages.Errorf(messages.Invalid, "key %s: cannot be rotated, because the key is also the name of the account; rotate a key that signs: %s", name, spelling.List(Rotatable()))
	}
	if role, ok := strings.CutSuffix(name, "-role"); ok && slices.Contains(signed, Role(role)) {
		return roleFile(Role(role)), nkeys.PrefixByteAccount, nil
	}
	return "", 0, messages.Errorf(messages.Invalid, "key %q: is not one of %s", name, spelling.List(Rotatable()))
}

// makeKey returns a new key and the text of its file.
func makeKey(kind nkeys.PrefixByte) (nkeys.KeyPair, []byte, error) {
	pair, err := nkeys.CreatePair(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	return pair, append(seed, '\n'), nil
}

// Reload reads the keys again, because another process may have changed them. After an error, the earlier keys stay in
// use.
func (d *directory) Reload() error {
	held, err := readKeys(d.dir, d.site)
	if err != nil {
		return err
	}
	d.held.Store(held)
	return nil
}

// Changed reports whether the directory has changed since its keys were read. It is cheaper than Reload.
func (d *directory) Changed() (bool, error) {
	now, err := stampOf(d.dir)
	return err == nil && now != d.held.Load().stamp, err
}

func stampOf(dir string) (stamp string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("keys directory: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // the file was just replaced; the next stamp includes the new one
		}
		if err != nil {
			return "", fmt.Errorf("keys directory: %w", err)
		}
		stamp += fmt.Sprintf("%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return stamp, nil
}
