package identity

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// linkPrefix is the beginning of the names of accounts that are shared with peers.
const linkPrefix = "PEER-"

// These are the limits of a NATS account for the link to a peer. Each host of the peer has one connection to each host
// of this site, and subscribes to the requests between sites and their answers.
const (
	linkConnections = 64
	linkSubs        = 1_000 // subscriptions of one connection
)

// Token is a signed claim of an account.
type Token struct {
	Name  string // for people who read the token
	Key   string // the account's public key
	Token string
}

// Tokens are the signed claims of a site's server: the claims of the operator, of the system account, of the account
// CANDOR, and of one account for each peer.
//
// The operator has two keys. Some accounts, such as CANDOR, are signed by the second key. They accept only credentials
// that are signed by the keys of roles, and none that are signed by the account's own key. So a stolen account key
// opens no connection.
type Tokens struct {
	Operators []string
	Accounts  []Token
}

// Tokens signs the claims of the site's servers. The claims have the site's own NATS account, CANDOR, and an account
// for each peer.
//
// A peer's servers connect as leaf nodes, and only to the peer's account. Only the requests of [clearing.PeerVerbs] and
// their replies can pass between this account and CANDOR.
func (a *Authority) Tokens(peers ...messages.Name) (Tokens, error) {
	k := a.held.Load()
	return k.tokens(k.operator, peers)
}

// TokensOf returns the same as Tokens, but for one server that already runs. After the operator's key was changed, this
// server may still trust the earlier public key. So the argument `operator` says which public key the server trusts.
func (a *Authority) TokensOf(operator string, peers ...messages.Name) (Tokens, error) {
	k := a.held.Load()
	signer, err := k.trusted(operator)
	if err != nil {
		return Tokens{}, err
	}
	return k.tokens(signer, peers)
}

func (k *keys) tokens(signer nkeys.KeyPair, peers []messages.Name) (Tokens, error) {
	claims, err := k.claims(peers)
	if err != nil {
		return Tokens{}, err
	}
	strict, err := fromSignature(signer, nkeys.PrefixByteOperator, "candor signing key of the account of "+k.site)
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	for _, keys := range []jwt.StringList{nil, {publicKey(strict)}} {
		operator := jwt.NewOperatorClaims(publicKey(signer))
		operator.Name = k.site
		operator.SystemAccount = publicKey(k.system)
		operator.SigningKeys, operator.StrictSigningKeyUsage = keys, keys != nil
		token, err := operator.Encode(signer)
		if err != nil {
			return Tokens{}, fmt.Errorf("signing operator %s: %w", k.site, err)
		}
		t.Operators = append(t.Operators, token)
	}
	for _, c := range claims {
		by := signer
		if c.Subject == k.name {
			by = strict
		}
		token, err := c.Encode(by)
		if err != nil {
			return Tokens{}, fmt.Errorf("signing account %s: %w", c.Name, err)
		}
		t.Accounts = append(t.Accounts, Token{Name: c.Name, Key: c.Subject, Token: token})
	}
	return t, nil
}

func (k *keys) claims(peers []messages.Name) ([]*jwt.AccountClaims, error) {
	own := k.accountClaims()
	all := []*jwt.AccountClaims{k.systemClaims(), own}
	seen := map[messages.Name]bool{k.site: true}
	for _, peer := range peers {
		if seen[peer] {
			return nil, messages.Errorf(messages.Invalid, "peer %s: is the site itself, or named twice", peer)
		}
		seen[peer] = true
		shared, err := k.linkClaims(own, peer)
		if err != nil {
			return nil, err
		}
		all = append(all, shared)
	}
	return all, nil
}

// linkClaims returns the claims of the account that is shared with a peer. The argument `own` has the claims of the
// account CANDOR. linkClaims adds permissions to the claims of both accounts, so that requests can pass between the two
// accounts.
func (k *keys) linkClaims(own *jwt.AccountClaims, peer messages.Name) (*jwt.AccountClaims, error) {
	key, err := k.linkKey(peer)
	if err != nil {
		return nil, err
	}
	shared := jwt.NewAccountClaims(publicKey(key))
	shared.Name = linkPrefix + peer
	shared.Limits.DisallowBearer = true
	shared.Limits.LeafNodeConn, shared.Limits.Subs = linkConnections, linkSubs
	shared.Revocations = k.revoked.list // contains the revoked keys of all accounts; no two keys are equal
	for _, verb := range clearing.PeerVerbs() {
		pass(own, shared, verb.Subject(peer, k.site))
		pass(shared, own, verb.Subject(k.site, peer))
	}
	return shared, nil
}

// The account `serving` answers requests on a subject. pass permits the account `asking` to send such requests.
func pass(serving, asking *jwt.AccountClaims, subject string) {
	serving.Exports.Add(&jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service})
	asking.Imports.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: serving.Subject, Type: jwt.Service})
}

// LinkAccount returns the public key of the account shared with a peer.
func (a *Authority) LinkAccount(peer messages.Name) (string, error) {
	key, err := a.held.Load().linkKey(peer)
	if err != nil {
		return "", err
	}
	return publicKey(key), nil
}

// IssueLink makes the credentials with which a peer's servers log in. A server with them can connect only as a leaf
// node, and gets only the account that is shared with the peer.
func (a *Authority) IssueLink(peer messages.Name) ([]byte, error) {
	key, err := a.held.Load().linkKey(peer)
	if err != nil {
		return nil, err
	}
	c, err := claimedAnew("peer "+peer, func(user string) (string, error) {
		claims := jwt.NewUserClaims(user)
		claims.Name = messages.ServiceIdentity(peer)
		// the credentials are valid only at the port for leaf nodes
		claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeLeafnode)
		return encode(claims, key, "peer "+peer)
	})
	if err != nil {
		return nil, err
	}
	return c.file()
}

// linkKey derives the key of the account shared with a peer. It is equal on every host, and needs no file.
func (k *keys) linkKey(peer messages.Name) (nkeys.KeyPair, error) {
	if !messages.ValidName(peer) {
		return nil, messages.Errorf(messages.Invalid, "peer %q: is not a valid name of a site", peer)
	}
	return fromSignature(k.system, nkeys.PrefixByteAccount, "candor account of site "+k.site+" shared with "+peer)
}
