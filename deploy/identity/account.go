package identity

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/proof"
)

// retiredFile is the file with what remains of the account's earlier keys.
const retiredFile = "account.json"

// retiredAccount is what remains of an earlier key of the account. It has a statement, signed with the earlier key,
// that another key follows. It also has the secret that checks the marks of transfers made under the earlier key. The
// earlier key itself was deleted.
type retiredAccount struct {
	Key      string              `json:"key"`
	Exchange []byte              `json:"exchange"`
	Next     messages.Succession `json:"next"`
}

// readAccount reads the account's keys. During a rotation, a second file has the next key. There are two cases in which
// the next key is already the current key: the rotation was interrupted, or only the first file was copied to this
// host.
func (k *keys) readAccount(dir string) error {
	err := durable.ReadJSON(filepath.Join(dir, retiredFile), &k.retiredAccounts)
	if err != nil {
		return fmt.Errorf("keys directory: %s: %w; restore the file from a backup, or copy it from another host", retiredFile, err)
	}
	if k.successor, err = readSpare(dir, accountFile+nextSuffix); err != nil {
		return err
	}
	k.name = publicKey(k.account)
	if len(k.retiredAccounts) > 0 {
		k.name = k.retiredAccounts[0].Key
	}
	present := proof.Successor(k.site, k.name, k.succession())
	if k.successor != nil && len(k.retiredAccounts) > 0 && publicKey(k.successor) == present {
		k.account, k.successor = k.successor, nil
	}
	if publicKey(k.account) != present {
		return fmt.Errorf("keys directory: %s and %s do not go together; copy the whole directory of another host", retiredFile, accountFile)
	}
	return nil
}

// succession returns the chain of signed statements from the account's name to the current key.
func (k *keys) succession() (links []messages.Succession) {
	for _, r := range k.retiredAccounts {
		links = append(links, r.Next)
	}
	return links
}

// retire makes a record that names the key which replaces the current key of the account. Then it deletes the current
// key.
func (k *keys) retire(dir string) error {
	exchange, err := k.exchange(k.account)
	if err != nil {
		return err
	}
	next := publicKey(k.successor)
	signature, err := k.account.Sign(proof.FollowsText(k.site, next))
	if err != nil {
		return fmt.Errorf("key account: %w", err)
	}
	r := retiredAccount{Key: publicKey(k.account), Exchange: exchange.Bytes(), Next: messages.Succession{Key: next, Signature: signature}}
	text, err := json.MarshalIndent(append(k.retiredAccounts, r), "", "  ")
	if err != nil {
		return fmt.Errorf("key account: %w", err)
	}
	return replace(filepath.Join(dir, retiredFile), append(text, '\n'))
}

// exchange returns the key with which the bank agrees with clients on secrets for sessions. It is derived from a key of
// the site's account.
func (k *keys) exchange(account nkeys.KeyPair) (*ecdh.PrivateKey, error) {
	signature, err := account.Sign([]byte("candor exchange key of " + k.site))
	if err != nil {
		return nil, fmt.Errorf("deriving the exchange key: %w", err)
	}
	seed := sha256.Sum256(signature)
	return ecdh.X25519().NewPrivateKey(seed[:])
}

// Succession returns the chain of signed statements from the account's name to the current key.
func (s signer) Succession() []messages.Succession { return s.held.Load().succession() }

// Exchange returns the exchange key that belongs to the account's first key.
func (s signer) Exchange() (*ecdh.PrivateKey, error) {
	k := s.held.Load()
	if len(k.retiredAccounts) == 0 {
		return k.exchange(k.account)
	}
	return ecdh.X25519().NewPrivateKey(k.retiredAccounts[0].Exchange)
}

// Later returns the exchange key that belongs to a key of the site's account. The argument `account` is this key of the
// account; it must be the present key or the next one. Later returns nil if this process does not have the key.
func (s signer) Later(account string) *ecdh.PrivateKey {
	k := s.held.Load()
	for _, pair := range []nkeys.KeyPair{k.account, k.successor} {
		if pair != nil && publicKey(pair) == account {
			exchange, err := k.exchange(pair)
			if err != nil {
				return nil
			}
			return exchange
		}
	}
	for _, r := range k.retiredAccounts {
		if r.Key == account {
			exchange, err := ecdh.X25519().NewPrivateKey(r.Exchange)
			if err != nil {
				return nil
			}
			return exchange
		}
	}
	return nil
}
