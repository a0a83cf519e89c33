package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// keys are the keys of a site when the directory was read. They do not change.
type keys struct {
	site     messages.Name
	operator nkeys.KeyPair
	// oldOperator is the operator's earlier key, or nil. Servers that have not restarted since its rotation still trust
	// it.
	oldOperator nkeys.KeyPair
	system      nkeys.KeyPair
	// account is the current key of the site's account. The account's name is its first public key, even if that key
	// was replaced. successor is the key that will replace the current one, or nil.
	account, successor nkeys.KeyPair
	name               string
	retiredAccounts    []retiredAccount
	// bank is the key that signs for the site. Before the first rotation this is the account's key, and later it is a
	// separate key. next is the key that will replace bank, or nil. The site tells its peers this key in advance.
	bank, next nkeys.KeyPair
	// signers are the keys that sign credentials, by role. Credentials signed by retired keys are still admitted.
	signers, retired map[Role]nkeys.KeyPair
	revoked          revocations
	stamp            string // stamp of the directory from before the keys were read; a new stamp means changed files
}

func readKeys(dir string, site messages.Name) (*keys, error) {
	k := &keys{site: site, signers: map[Role]nkeys.KeyPair{}, retired: map[Role]nkeys.KeyPair{}}
	for _, f := range []struct {
		file string
		pair *nkeys.KeyPair
	}{{operatorFile, &k.operator}, {systemFile, &k.system}, {accountFile, &k.account}} {
		pair, err := readKey(filepath.Join(dir, f.file), f.file == operatorFile)
		if err != nil {
			return nil, err
		}
		*f.pair = pair
	}
	var err error
	if k.stamp, err = stampOf(dir); err != nil {
		return nil, err
	}
	if k.oldOperator, err = readKey(filepath.Join(dir, operatorFile+oldSuffix), true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, r := range signed {
		if err := k.readRole(dir, r); err != nil {
			return nil, err
		}
	}
	if err := k.readAccount(dir); err != nil {
		return nil, err
	}
	if k.bank, err = readSpare(dir, bankFile); err != nil {
		return nil, err
	}
	if k.bank == nil {
		k.bank = k.account
	}
	if k.next, err = readSpare(dir, bankFile+nextSuffix); err != nil {
		return nil, err
	}
	if k.revoked, err = readRevocations(dir); err != nil {
		return nil, err
	}
	return k, k.revoke()
}

// readRole reads the present key of a role. While the role's previous key is still valid too, it also reads that key.
func (k *keys) readRole(dir string, r Role) (err error) {
	if k.signers[r], err = readKey(filepath.Join(dir, roleFile(r)), false); errors.Is(err, fs.ErrNotExist) && !slices.Contains(roles, r) {
		k.signers[r], err = k.derive(r)
	}
	if err != nil {
		return err
	}
	old, err := readSpare(dir, roleFile(r)+oldSuffix)
	if old != nil {
		k.retired[r] = old
	}
	return err
}

// ofRole returns the keys that sign credentials of a role. During a rotation there are two keys, and the earlier key
// comes first.
func (k *keys) ofRole(r Role) []nkeys.KeyPair {
	return slices.DeleteFunc([]nkeys.KeyPair{k.retired[r], k.signers[r]}, func(pair nkeys.KeyPair) bool { return pair == nil })
}

// readSpare reads a key, or returns nil if the file is missing.
func readSpare(dir, file string) (nkeys.KeyPair, error) {
	pair, err := readKey(filepath.Join(dir, file), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return pair, err
}

// derive derives the key of a role that has no key file. It signs a text with the system account's key, and derives the
// role's key from the signature. The system account's key never leaves the process.
func (k *keys) derive(r Role) (nkeys.KeyPair, error) {
	return fromSignature(k.system, nkeys.PrefixByteAccount, "candor key of the role "+string(r)+" of "+k.site)
}

// fromSignature derives a key from the signature of a text. Only the owner of the signing key can derive it.
func fromSignature(signer nkeys.KeyPair, kind nkeys.PrefixByte, text string) (nkeys.KeyPair, error) {
	signature, err := signer.Sign([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	seed, err := nkeys.EncodeSeed(kind, signature[:32])
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	return nkeys.FromSeed(seed)
}

func readKey(path string, operator bool) (nkeys.KeyPair, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, messages.Errorf(messages.PermissionDenied, "key %s: other users can read this file (mode %04o); set its mode to 600 with chmod, or make new keys if somebody may have read the key", path, info.Mode().Perm())
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	pair, err := nkeys.FromSeed([]byte(trim(seed)))
	if err != nil {
		return nil, fmt.Errorf("key %s: is damaged: %w; restore it from a backup, or copy it from another host", path, err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
	}
	if operator != nkeys.IsValidPublicOperatorKey(public) || !operator && !nkeys.IsValidPublicAccountKey(public) {
		return nil, fmt.Errorf("key %s: is of the wrong type", path)
	}
	return pair, nil
}

func trim(b []byte) string { return strings.TrimRight(string(b), "\r\n") }
