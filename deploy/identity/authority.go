package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
)

// Account is the name of the account in which a site's traffic runs.
const Account = "CANDOR"

// Authority holds a site's keys and issues credentials. Its methods are safe
// for concurrent use.
type Authority struct {
	site     messages.Name
	operator nkeys.KeyPair
	system   nkeys.KeyPair
	account  nkeys.KeyPair
	signers  map[Role]nkeys.KeyPair
}

// Create makes the keys of a site in dir, which must not exist: all of them
// or, on an error, none.
func Create(dir string, site messages.Name) (*Authority, error) {
	if !messages.ValidName(site) {
		return nil, messages.Errorf(messages.Invalid, "site %q: is not a valid name", site)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil, messages.Errorf(messages.Conflict, "keys directory %s: exists already; keys are never replaced in place", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := writeKeys(aside, site); err != nil {
		return nil, err
	}
	if err := os.Rename(aside, dir); err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	return Open(dir)
}

func writeKeys(dir string, site messages.Name) error {
	if err := os.WriteFile(filepath.Join(dir, siteFile), []byte(site+"\n"), 0o600); err != nil {
		return fmt.Errorf("keys directory: %w", err)
	}
	for _, file := range keyFiles() {
		make := nkeys.CreateAccount
		if file == operatorFile {
			make = nkeys.CreateOperator
		}
		pair, err := make()
		if err != nil {
			return fmt.Errorf("making key %s: %w", file, err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return fmt.Errorf("making key %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), append(seed, '\n'), 0o600); err != nil {
			return fmt.Errorf("keys directory: %w", err)
		}
	}
	return nil
}

// Names of the files of a keys directory.
const (
	siteFile     = "site"
	operatorFile = "operator.nk"
	systemFile   = "system.nk"
	accountFile  = "account.nk"
)

func roleFile(r Role) string { return "role-" + string(r) + ".nk" }

func keyFiles() []string {
	files := []string{operatorFile, systemFile, accountFile}
	for _, r := range roles {
		files = append(files, roleFile(r))
	}
	return files
}

// Open reads the keys that Create made. A key that others than its owner can
// read is refused. If dir does not exist the error matches fs.ErrNotExist.
func Open(dir string) (*Authority, error) {
	site, err := os.ReadFile(filepath.Join(dir, siteFile))
	if err != nil {
		return nil, fmt.Errorf("keys directory: %w", err)
	}
	pairs := map[string]nkeys.KeyPair{}
	for _, file := range keyFiles() {
		if pairs[file], err = readKey(filepath.Join(dir, file), file == operatorFile); err != nil {
			return nil, err
		}
	}
	a := &Authority{
		site:     trim(site),
		operator: pairs[operatorFile],
		system:   pairs[systemFile],
		account:  pairs[accountFile],
		signers:  map[Role]nkeys.KeyPair{},
	}
	for _, r := range roles {
		a.signers[r] = pairs[roleFile(r)]
	}
	if a.signers[Peer], err = a.peerKey(); err != nil {
		return nil, err
	}
	if !messages.ValidName(a.site) {
		return nil, fmt.Errorf("keys directory %s: file %s does not hold a site's name", dir, siteFile)
	}
	return a, nil
}

// peerKey derives the key of a role that has no file from the system account's
// key, of which only signatures ever leave the process, and never this one.
func (a *Authority) peerKey() (nkeys.KeyPair, error) {
	signature, err := a.system.Sign([]byte("candor key of the role peer of " + a.site))
	if err != nil {
		return nil, fmt.Errorf("deriving the key of peers: %w", err)
	}
	seed, err := nkeys.EncodeSeed(nkeys.PrefixByteAccount, signature[:32])
	if err != nil {
		return nil, fmt.Errorf("deriving the key of peers: %w", err)
	}
	return nkeys.FromSeed(seed)
}

// OpenOrCreate opens the keys of a site in dir, making them if dir does not
// exist. Keys of another site are refused.
func OpenOrCreate(dir string, site messages.Name) (*Authority, error) {
	a, err := Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
			return Create(dir, site)
		}
	}
	if err != nil {
		return nil, err
	}
	if a.site != site {
		return nil, messages.Errorf(messages.Conflict, "keys directory %s: holds the keys of site %q, not of %q", dir, a.site, site)
	}
	return a, nil
}

func readKey(path string, operator bool) (nkeys.KeyPair, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, messages.Errorf(messages.PermissionDenied, "key %s: others can read it (mode %04o); chmod 600 it, or make new keys if it was exposed", path, info.Mode().Perm())
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	pair, err := nkeys.FromSeed([]byte(trim(seed)))
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
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

func trim(b []byte) string {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return string(b)
}

// Site is the site whose keys these are.
func (a *Authority) Site() messages.Name { return a.site }

// Credentials are a claim to a name in a role, signed, and the seed of the key
// that proves it.
type Credentials struct{ Token, Seed string }

// Issue makes credentials in the usual format of a creds file. Each call makes
// a new key; credentials issued before stay valid.
func (a *Authority) Issue(role Role, n messages.Name) ([]byte, error) {
	c, err := a.Credentials(role, n)
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(c.Token, []byte(c.Seed))
}

// Credentials makes credentials to be used in this process.
func (a *Authority) Credentials(role Role, n messages.Name) (Credentials, error) {
	signer := a.signers[role]
	if signer == nil {
		return Credentials{}, messages.Errorf(messages.Invalid, "role %q: is none of %v", role, signed)
	}
	if err := checkName(role, n); err != nil {
		return Credentials{}, err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for %s: %w", n, err)
	}
	claims := jwt.NewUserClaims(publicKey(user))
	claims.Name = n
	claims.IssuerAccount = publicKey(a.account)
	claims.SetScoped(true)
	token, err := claims.Encode(signer)
	if err != nil {
		return Credentials{}, fmt.Errorf("signing the claim of %s: %w", n, err)
	}
	seed, err := user.Seed()
	if err != nil {
		return Credentials{}, fmt.Errorf("making a key for %s: %w", n, err)
	}
	return Credentials{Token: token, Seed: string(seed)}, nil
}

// Issued reports the role and name that credentials of this authority claim;
// an error if they are another authority's or no credentials at all.
func (a *Authority) Issued(creds []byte) (Role, messages.Name, error) {
	claims, err := userClaims(creds)
	if err != nil {
		return "", "", err
	}
	for _, r := range signed {
		if claims.Issuer == publicKey(a.signers[r]) {
			return r, claims.Name, nil
		}
	}
	return "", "", messages.Errorf(messages.PermissionDenied, "credentials of %q: not issued with the keys of site %s", claims.Name, a.site)
}

// userClaims are what a credentials file says, signed by whoever it names.
func userClaims(creds []byte) (*jwt.UserClaims, error) {
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return claims, nil
}

// publicKey of a pair that was read or made here, and so has one.
func publicKey(pair nkeys.KeyPair) string {
	public, err := pair.PublicKey()
	if err != nil {
		panic(err) // a pair from a seed always has its public key
	}
	return public
}
