package identity

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// The operators of two sites exchange two kinds of letters, to make the sites peers.
const (
	InvitationKind = "candor-invitation"
	AnswerKind     = "candor-answer"
)

// Letter is a file that the operator of a site sends to the operator of another site, to make the sites peers. An
// invitation has credentials and must be kept secret. An answer has nothing secret, and is signed with the invitation's
// credentials.
type Letter struct {
	Kind string        `json:"kind"`
	Site messages.Name `json:"site"` // the writer's site
	Peer messages.Name `json:"peer"` // the reader's site
	// Keys are the public keys of the writer's bank.
	Keys []string `json:"keys"`
	// CA is the certificate, in PEM, of the authority of the writer's servers, or "".
	CA string `json:"ca,omitempty"`
	// These fields are only in an invitation. URLs are the addresses to which the servers of the invited site connect.
	// Creds are the credentials for these connections.
	URLs  []string `json:"urls,omitempty"`
	Creds string   `json:"creds,omitempty"`
	// These fields are only in an answer. The credentials in the invitation consist of a key and a claim. Token is this
	// claim. Signature is made with this key, and covers all other fields of the letter.
	Token     string `json:"token,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// Invite returns an invitation to another site.
func (a *Authority) Invite(peer messages.Name, urls []string, ca string) (*Letter, error) {
	if peer == a.site {
		return nil, messages.Errorf(messages.Invalid, "peer %s: is the site itself", peer)
	}
	creds, err := a.IssueLink(peer)
	if err != nil {
		return nil, err
	}
	l := &Letter{Kind: InvitationKind, Site: a.site, Peer: peer, CA: ca, URLs: urls, Creds: string(creds)}
	l.Keys, err = a.bankKeys()
	return l, err
}

// Answer returns the answer to an invitation.
func (a *Authority) Answer(invitation *Letter, ca string) (*Letter, error) {
	if err := invitation.Check(a.site); err != nil {
		return nil, err
	}
	l := &Letter{Kind: AnswerKind, Site: a.site, Peer: invitation.Site, CA: ca}
	var err error
	if l.Keys, err = a.bankKeys(); err != nil {
		return nil, err
	}
	if l.Token, err = jwt.ParseDecoratedJWT([]byte(invitation.Creds)); err != nil {
		return nil, fmt.Errorf("credentials of the invitation: %w", err)
	}
	user, err := jwt.ParseDecoratedUserNKey([]byte(invitation.Creds))
	if err != nil {
		return nil, fmt.Errorf("credentials of the invitation: %w", err)
	}
	text, err := l.signed()
	if err != nil {
		return nil, err
	}
	l.Signature, err = user.Sign(text)
	return l, err
}

// Verify checks that an answer was signed with an invitation of this site.
func (a *Authority) Verify(answer *Letter) error {
	if err := answer.Check(a.site); err != nil {
		return err
	}
	claims, err := jwt.DecodeUserClaims(answer.Token)
	if err != nil {
		return messages.Errorf(messages.Invalid, "answer of %s: token: %v", answer.Site, err)
	}
	account, err := a.LinkAccount(answer.Site)
	if err != nil {
		return err
	}
	if claims.Issuer != account {
		return messages.Errorf(messages.PermissionDenied, "answer of %s: this site has written no invitation for the other site; write an invitation with candor site invite %s", answer.Site, answer.Site)
	}
	key, err := nkeys.FromPublicKey(claims.Subject)
	if err != nil {
		return messages.Errorf(messages.Invalid, "answer of %s: token: %v", answer.Site, err)
	}
	text, err := answer.signed()
	if err != nil {
		return err
	}
	if err := key.Verify(text, answer.Signature); err != nil {
		return messages.Errorf(messages.PermissionDenied, "answer of %s: was altered, or is not from the receiver of the invitation; ask for a new answer", answer.Site)
	}
	return nil
}

func (l *Letter) signed() ([]byte, error) {
	rest := *l
	rest.Signature = nil
	return json.Marshal(rest)
}

// Check returns an error if a letter for a site is malformed.
func (l *Letter) Check(site messages.Name) error {
	switch {
	case l.Kind != InvitationKind && l.Kind != AnswerKind:
		return messages.Errorf(messages.Invalid, "kind %q: is neither an invitation nor an answer", l.Kind)
	case l.Peer != site:
		return messages.Errorf(messages.Invalid, "the invitation or answer from %q is for site %q, not for %q", l.Site, l.Peer, site)
	case l.Kind == InvitationKind && (len(l.URLs) == 0 || l.Creds == ""):
		return messages.Errorf(messages.Invalid, "the invitation of %q has no address or no credentials; ask for a new invitation", l.Site)
	}
	r := clearing.PeerRequest{Peer: l.Site, Keys: l.Keys}
	if err := r.Validate(); err != nil {
		return err
	}
	for _, key := range l.Keys {
		if !nkeys.IsValidPublicAccountKey(key) {
			return messages.Errorf(messages.Invalid, "keys: %q is no public key of a bank", key)
		}
	}
	return nil
}

// bankKeys returns the public keys that check signatures of the site's bank.
func (s signer) bankKeys() ([]string, error) {
	key, err := s.PublicKey()
	if err != nil {
		return nil, err
	}
	keys := []string{key}
	if next := s.NextKey(); next != "" {
		keys = append(keys, next)
	}
	return keys, nil
}
