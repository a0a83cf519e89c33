package bank

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha256"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/proof"
)

type siteKeys struct {
	t       *testing.T
	account nkeys.KeyPair

	mu      sync.Mutex
	roles   []messages.RoleKey
	signers map[string]nkeys.KeyPair // by role: the present key
	revoked []string
	later   []nkeys.KeyPair // keys that replaced the account's key
	links   []messages.Succession
}

func newSiteKeys(t *testing.T) *siteKeys {
	k := &siteKeys{t: t, account: accountKey(t), signers: map[string]nkeys.KeyPair{}}
	for _, role := range []string{"user", "operator", "service"} {
		k.rotate(role)
	}
	return k
}

func accountKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rotate gives a role another key. The old key is valid until finish is called.
func (k *siteKeys) rotate(role string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signers[role] = accountKey(k.t)
	k.roles = append(k.roles, messages.RoleKey{Role: role, Key: public(k.t, k.signers[role])})
}

func (k *siteKeys) finish(role string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	present := public(k.t, k.signers[role])
	k.roles = slices.DeleteFunc(k.roles, func(r messages.RoleKey) bool { return r.Role == role && r.Key != present })
}

func (k *siteKeys) AccountKey() string { return public(k.t, k.account) }
func (k *siteKeys) RoleKeys() []messages.RoleKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.roles)
}
func (k *siteKeys) RevokedKeys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.revoked)
}
func (k *siteKeys) SignAccount(data []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.speaks().Sign(data)
}
func (k *siteKeys) Exchange() (*ecdh.PrivateKey, error) { return k.Later(k.AccountKey()), nil }
func (k *siteKeys) Later(account string) *ecdh.PrivateKey {
	seed := sha256.Sum256([]byte(account))
	exchange, err := ecdh.X25519().NewPrivateKey(seed[:])
	if err != nil {
		k.t.Error(err)
	}
	return exchange
}
func (k *siteKeys) Succession() []messages.Succession {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.links)
}

func (k *siteKeys) speaks() nkeys.KeyPair {
	if n := len(k.later); n > 0 {
		return k.later[n-1]
	}
	return k.account
}

func (k *siteKeys) succeed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := accountKey(k.t)
	signature, err := k.speaks().Sign(proof.FollowsText("here", public(k.t, next)))
	if err != nil {
		k.t.Fatal(err)
	}
	k.links, k.later = append(k.links, messages.Succession{Key: public(k.t, next), Signature: signature}), append(k.later, next)
}

func (k *siteKeys) issue(role string, name messages.Name) proof.Principal {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	user, err := nkeys.CreateUser()
	if err != nil {
		k.t.Fatal(err)
	}
	claims := jwt.NewUserClaims(public(k.t, user))
	claims.Name, claims.IssuerAccount = name, public(k.t, k.account)
	claims.SetScoped(true)
	token, err := claims.Encode(k.signers[role])
	if err != nil {
		k.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		k.t.Fatal(err)
	}
	return proof.Principal{Token: token, Seed: string(seed)}
}

// This method returns a copy of the bed. The connection of the copy has the given credentials.
func (b *bed) as(p proof.Principal, name messages.Name) *bed {
	other := &bed{T: b.T, network: b.network, bank: b.bank, box: b.box, metrics: b.metrics}
	other.client = b.network.ConnectAs(name, &bus.Identity{Principal: func() (proof.Principal, error) { return p, nil }, Clock: b.clock})
	return other
}

// provenBed returns a bank that requires signatures from its first record on.
func provenBed(t *testing.T, tune ...func(*Config)) (*bed, *siteKeys) {
	k := newSiteKeys(t)
	b := startWith(t, func(c *Config) {
		c.Keys = k
		c.Services = append(c.Services, messages.ServiceIdentity("bank"))
		for _, f := range tune {
			f(c)
		}
	})
	b.setClock(messages.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	t.Cleanup(func() { // this runs before the bank is closed
		if t.Failed() {
			return
		}
		if err := b.restarts(b.image()); err != nil {
			t.Errorf("a replica does not start with honest books: %v", err)
		}
	})
	return b, k
}

func (b *bed) image() []byte {
	b.Helper()
	var out bytes.Buffer
	if _, err := b.bank.machine.Capture().WriteTo(&out); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}
