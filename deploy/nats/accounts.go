package nats

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// verbs are what the bank of one site asks of another's.
var verbs = []string{messages.VerbInstruct, messages.VerbLines}

// site is what a keys directory says of a site.
type site struct {
	name     messages.Name
	dir      string
	operator nkeys.KeyPair
	claims   *jwt.OperatorClaims
	system   string // public key
	accounts map[string]*jwt.AccountClaims
	own      *jwt.AccountClaims // the account of the site's traffic
}

// Accounts returns accounts.conf of the site whose keys are in a directory, with
// an account for each peer. The key of a peer's account is made, in the same
// directory, when the peer is named for the first time.
func Accounts(keys string, peers ...messages.Name) ([]byte, error) {
	s, err := open(keys)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		if err := s.admit(p); err != nil {
			return nil, err
		}
	}
	return s.write()
}

// PeerAccount returns the public key of the account that the site shares with a
// peer, which leaf.conf wants.
func PeerAccount(keys string, peer messages.Name) (string, error) {
	pair, err := peerKey(keys, peer)
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// PeerCredentials returns credentials with which the servers of a peer connect to
// this site's hub: to the account shared with it, and as leaf nodes only.
func PeerCredentials(keys string, peer messages.Name) ([]byte, error) {
	account, err := peerKey(keys, peer)
	if err != nil {
		return nil, err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making a key for peer %s: %w", peer, err)
	}
	public, err := user.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("making a key for peer %s: %w", peer, err)
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = messages.ServiceIdentity(peer)
	claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeLeafnode, jwt.ConnectionTypeLeafnodeWS)
	token, err := claims.Encode(account)
	if err != nil {
		return nil, fmt.Errorf("signing the claim of peer %s: %w", peer, err)
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, fmt.Errorf("making a key for peer %s: %w", peer, err)
	}
	return jwt.FormatUserConfig(token, seed)
}

// open reads the claims that the site's own servers go by.
func open(keys string) (*site, error) {
	authority, err := identity.Open(keys)
	if err != nil {
		return nil, err
	}
	var o server.Options
	if err := authority.Secure(&o); err != nil {
		return nil, err
	}
	s := &site{name: authority.Site(), dir: keys, claims: o.TrustedOperators[0], system: o.SystemAccount, accounts: map[string]*jwt.AccountClaims{}}
	if s.operator, err = readSeed(filepath.Join(keys, "operator.nk")); err != nil {
		return nil, err
	}
	main, err := authority.PublicKey()
	if err != nil {
		return nil, err
	}
	for _, key := range []string{s.system, main} {
		token, err := o.AccountResolver.Fetch(key)
		if err != nil {
			return nil, fmt.Errorf("claims of account %s: %w", key, err)
		}
		if s.accounts[key], err = jwt.DecodeAccountClaims(token); err != nil {
			return nil, fmt.Errorf("claims of account %s: %w", key, err)
		}
	}
	s.own = s.accounts[main]
	return s, nil
}

// admit adds the account shared with a peer. Requests of either bank to the other
// pass from one account into the next, and their replies back.
func (s *site) admit(peer messages.Name) error {
	pair, err := peerKey(s.dir, peer)
	if err != nil {
		return err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	if peer == s.name || s.accounts[public] != nil {
		return messages.Errorf(messages.Invalid, "peer %s: is the site itself, or named twice", peer)
	}
	shared := jwt.NewAccountClaims(public)
	shared.Name = "PEER-" + peer
	for _, verb := range verbs {
		pass(s.own, shared, messages.Subject(s.name, messages.Bank, verb, messages.ServiceIdentity(peer)))
		pass(shared, s.own, messages.Subject(peer, messages.Bank, verb, messages.ServiceIdentity(s.name)))
	}
	s.accounts[public] = shared
	return nil
}

// pass lets requests on a subject that one account serves come from another.
func pass(serving, asking *jwt.AccountClaims, subject string) {
	serving.Exports.Add(&jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service})
	asking.Imports.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: serving.Subject, Type: jwt.Service})
}

func (s *site) write() ([]byte, error) {
	token, err := s.claims.Encode(s.operator)
	if err != nil {
		return nil, fmt.Errorf("signing operator %s: %w", s.name, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Site %s. Made from its keys; holds no secret.\noperator: %q\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n", s.name, token, s.system)
	for _, key := range slices.Sorted(maps.Keys(s.accounts)) {
		token, err := s.accounts[key].Encode(s.operator)
		if err != nil {
			return nil, fmt.Errorf("signing account %s: %w", s.accounts[key].Name, err)
		}
		fmt.Fprintf(&out, "  # %s\n  %s: %q\n", s.accounts[key].Name, key, token)
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}

// peerKey reads the key of the account shared with a peer, or makes it.
func peerKey(keys string, peer messages.Name) (nkeys.KeyPair, error) {
	if !messages.ValidName(peer) {
		return nil, messages.Errorf(messages.Invalid, "peer %q: is not a valid name of a site", peer)
	}
	file := filepath.Join(keys, "peer-"+peer+".nk")
	pair, err := readSeed(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return pair, err
	}
	if pair, err = nkeys.CreateAccount(); err != nil {
		return nil, fmt.Errorf("making the key of peer %s: %w", peer, err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, fmt.Errorf("making the key of peer %s: %w", peer, err)
	}
	if err := os.WriteFile(file, append(seed, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("key of peer %s: %w", peer, err)
	}
	return pair, nil
}

func readSeed(file string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return pair, nil
}
