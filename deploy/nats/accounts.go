package nats

import (
	"bytes"
	"fmt"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Accounts returns accounts.conf of the site whose keys are in a directory, with
// an account for each peer.
func Accounts(keys string, peers ...messages.Name) ([]byte, error) {
	authority, err := identity.Open(keys)
	if err != nil {
		return nil, err
	}
	tokens, err := authority.Tokens(peers...)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Site %s. Made from its keys; holds no secret.\noperator: [%q, %q]\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n",
		authority.Site(), tokens.Operators[0], tokens.Operators[1], tokens.Accounts[0].Key)
	for _, t := range tokens.Accounts {
		fmt.Fprintf(&out, "  # %s\n  %s: %q\n", t.Name, t.Key, t.Token)
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}
