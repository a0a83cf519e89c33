package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// revokedFile lists the revoked names and keys. It contains no secret.
const revokedFile = "revoked.json"

// revocations lists what a site revoked.
type revocations struct {
	// Generations has the number of revocations of each name, by role and name, such as "user alice". The key of a name
	// is derived from the name and this number.
	Generations map[string]int `json:"generations,omitempty"`
	// Keys are single public keys that were revoked.
	Keys []string `json:"keys,omitempty"`

	list jwt.RevocationList // all revoked keys, for the account's claims
}

func (r *revocations) generation(role Role, n messages.Name) int {
	return r.Generations[string(role)+" "+n]
}

// never is a time that is later than any claim. A revocation of a key with a time revokes all claims that were made
// before this time. So a revocation with the time never is permanent.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func readRevocations(dir string) (r revocations, err error) {
	path := filepath.Join(dir, revokedFile)
	if err := durable.ReadJSON(path, &r); err != nil {
		return r, fmt.Errorf("revocations %s: %w", path, err)
	}
	return r, nil
}

func (k *keys) revoke() error {
	k.revoked.list = jwt.RevocationList{}
	for _, key := range k.revoked.Keys {
		k.revoked.list.Revoke(key, never)
	}
	for who, generations := range k.revoked.Generations {
		role, n, _ := strings.Cut(who, " ")
		for _, signer := range k.ofRole(Role(role)) {
			for g := range generations {
				user, err := userKey(signer, Role(role), n, g)
				if err != nil {
					return err
				}
				k.revoked.list.Revoke(publicKey(user), never)
			}
		}
	}
	return nil
}

// Revoke revokes two things: all credentials issued so far for a name in a role, and the public keys in the argument
// `further`. When the site's servers reload the keys, they refuse the revoked credentials, and close connections that
// use such credentials. Credentials that are issued later for the name are valid.
func (d *directory) Revoke(role Role, n messages.Name, further ...string) error {
	if err := checkRole(role, n); err != nil {
		return err
	}
	return d.changeRevocations(func(r *revocations) {
		if r.Generations == nil {
			r.Generations = map[string]int{}
		}
		r.Generations[string(role)+" "+n]++
		r.addKeys(further)
	})
}

// RevokeKey revokes one public key.
func (d *directory) RevokeKey(key string) error {
	if !nkeys.IsValidPublicUserKey(key) {
		return messages.Errorf(messages.Invalid, "key %q: is not a public user key, which begins with U; \"candor node tokens\" shows the keys", key)
	}
	return d.changeRevocations(func(r *revocations) { r.addKeys([]string{key}) })
}

func (r *revocations) addKeys(keys []string) {
	for _, key := range keys {
		if !slices.Contains(r.Keys, key) {
			r.Keys = append(r.Keys, key)
		}
	}
}

func (d *directory) changeRevocations(change func(*revocations)) error {
	if err := d.writeRevocations(func(r *revocations) bool { change(r); return true }); err != nil {
		return err
	}
	return d.Reload()
}

// writeRevocations calls the function `change` with the recorded revocations. If the function returns true,
// writeRevocations replaces the file of revocations in one step.
func (d *directory) writeRevocations(change func(*revocations) bool) error {
	r, err := readRevocations(d.dir)
	if err != nil || !change(&r) {
		return err
	}
	text, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(d.dir, revokedFile), append(text, '\n'))
}

// replace replaces a file in one step. The owner of the directory becomes the owner of the new file, and only this
// owner can read it. So root can replace a file of a site that runs as another user, and the site can still read the
// file.
func replace(path string, data []byte) error {
	err := durable.Replace(path, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		if of, statErr := os.Stat(filepath.Dir(path)); statErr == nil && os.Geteuid() == 0 {
			if owner, ok := of.Sys().(*syscall.Stat_t); ok {
				err = errors.Join(err, f.Chown(int(owner.Uid), int(owner.Gid)))
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keys directory: %w", err)
	}
	return nil
}

// KeyOf returns the public key in a credentials file, without checking who issued it.
func KeyOf(creds []byte) (string, error) {
	claims, err := userClaims(creds)
	if err != nil {
		return "", err
	}
	return claims.Subject, nil
}

// Revocations returns the content of the file, for [directory.AddRevocations] on another host. It contains no secret.
func (d *directory) Revocations() ([]byte, error) {
	r, err := readRevocations(d.dir)
	if err != nil {
		return nil, err
	}
	return json.Marshal(&r)
}

// AddRevocations adds the revocations of another host of the site. They take effect when the keys are reloaded.
func (d *directory) AddRevocations(text []byte) error {
	var more revocations
	if err := json.Unmarshal(text, &more); err != nil {
		return messages.Errorf(messages.Invalid, "revocations: %v", err)
	}
	return d.writeRevocations(func(r *revocations) bool {
		changed := false
		for who, generation := range more.Generations {
			if generation > r.Generations[who] {
				if r.Generations == nil {
					r.Generations = map[string]int{}
				}
				r.Generations[who], changed = generation, true
			}
		}
		before := len(r.Keys)
		r.addKeys(more.Keys)
		return changed || len(r.Keys) > before
	})
}

// Holder identifies a holder of credentials by its role and its name. The same name may exist in several roles.
type Holder struct {
	Role Role
	Name messages.Name
}

// Revoked returns how often the credentials of each name were revoked.
func (d *directory) Revoked() map[Holder]int {
	all := map[Holder]int{}
	for who, n := range d.held.Load().revoked.Generations {
		role, name, _ := strings.Cut(who, " ")
		all[Holder{Role(role), name}] = n
	}
	return all
}
