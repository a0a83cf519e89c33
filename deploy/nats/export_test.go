package nats

import (
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// PeerAccount returns the public key of the account that the site shares with a peer. leaf.conf needs it.
func PeerAccount(keys string, peer messages.Name) (string, error) {
	authority, err := identity.Open(keys)
	if err != nil {
		return "", err
	}
	return authority.LinkAccount(peer)
}

// PeerCredentials returns credentials with which the servers of a peer can connect to this site's hub, only as leaf
// nodes of the shared account.
func PeerCredentials(keys string, peer messages.Name) ([]byte, error) {
	authority, err := identity.Open(keys)
	if err != nil {
		return nil, err
	}
	return authority.IssueLink(peer)
}
