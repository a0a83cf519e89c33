package identity

import (
	"slices"
	"testing"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func decode(t *testing.T, token string) *jwt.AccountClaims {
	t.Helper()
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// Through the account of a peer, only two kinds of requests may pass: requests from the site to this peer, and requests
// from this peer to the site.
func TestLinkAccountsShareNothing(t *testing.T) {
	west := authorityOf(t, "west")
	tokens, err := west.Tokens("east", "north")
	if err != nil || len(tokens.Accounts) != 4 {
		t.Fatalf("%d accounts, %v", len(tokens.Accounts), err)
	}
	own := decode(t, tokens.Accounts[1].Token)
	for i, peer := range []messages.Name{"east", "north"} {
		account := tokens.Accounts[2+i]
		if key, err := west.LinkAccount(peer); err != nil || key != account.Key || account.Name != "PEER-"+peer {
			t.Errorf("the account of %s is %s %s, %v", peer, account.Name, account.Key, err)
		}
		shared := decode(t, account.Token)
		var out, in []string
		for _, v := range clearing.PeerVerbs() {
			out, in = append(out, v.Subject("west", peer)), append(in, v.Subject(peer, "west"))
		}
		if got := exports(shared); !slices.Equal(got, sorted(out)) {
			t.Errorf("the account of %s serves %q, want %q", peer, got, out)
		}
		var got []string
		for _, i := range shared.Imports {
			if i.Account != own.Subject || i.Type != jwt.Service {
				t.Errorf("the account of %s has %+v", peer, i)
			}
			got = append(got, string(i.Subject))
		}
		if !slices.Equal(sorted(got), sorted(in)) {
			t.Errorf("the account of %s asks %q, want %q", peer, got, in)
		}
	}
	if n := len(clearing.PeerVerbs()); len(own.Exports) != 2*n || len(own.Imports) != 2*n {
		t.Errorf("the site's account has %d exports and %d imports for two peers of %d verbs", len(own.Exports), len(own.Imports), n)
	}
}

func exports(c *jwt.AccountClaims) (subjects []string) {
	for _, e := range c.Exports {
		subjects = append(subjects, string(e.Subject))
	}
	return sorted(subjects)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// Every host of a site must derive the same account for a peer. If the site or the peer is another one, the account
// must be another one. For an invalid name, no account must be derived.
func TestLinkKeysAreTheSites(t *testing.T) {
	a, dir := create(t)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := authorityOf(t, a.Site())
	keys := map[string]bool{}
	for _, one := range []struct {
		*Authority
		peer messages.Name
	}{{a, "east"}, {again, "east"}, {other, "east"}, {a, "north"}} {
		key, err := one.LinkAccount(one.peer)
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d different accounts, want 3", len(keys))
	}
	for _, peers := range [][]messages.Name{{"West!"}, {""}, {a.Site()}, {"east", "east"}} {
		if _, err := a.Tokens(peers...); messages.KindOf(err) != messages.Invalid {
			t.Errorf("peers %q: %v", peers, err)
		}
	}
}
