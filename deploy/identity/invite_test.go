package identity

import (
	"testing"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
)

func authorityOf(t *testing.T, site messages.Name) *Authority {
	t.Helper()
	a, err := Create(t.TempDir()+"/keys", site)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The site that wrote an invitation must accept the answer of the invited site. It must refuse an answer that was
// changed, or that answers another invitation. Another site must not be able to answer.
func TestLetters(t *testing.T) {
	west, east, north := authorityOf(t, "west"), authorityOf(t, "east"), authorityOf(t, "north")
	urls := []string{"tls://hub.west.example:7422"}
	invitation, err := west.Invite("east", urls, "PEM of west")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := east.Answer(invitation, "PEM of east")
	if err != nil {
		t.Fatal(err)
	}
	if err := west.Verify(answer); err != nil {
		t.Errorf("the answer: %v", err)
	}
	if key, _ := east.PublicKey(); len(answer.Keys) != 1 || answer.Keys[0] != key || answer.CA != "PEM of east" || answer.Creds != "" {
		t.Errorf("the answer is %+v", answer)
	}
	if _, err := north.Answer(invitation, ""); messages.KindOf(err) != messages.Invalid {
		t.Errorf("an invitation to another site: %v", err)
	}
	other, err := north.Invite("east", urls, "")
	if err != nil {
		t.Fatal(err)
	}
	misled, err := east.Answer(other, "")
	if err != nil {
		t.Fatal(err)
	}
	misled.Peer = "west"
	for what, forge := range map[string]func(l Letter) Letter{
		"another's key":          func(l Letter) Letter { l.Keys, _ = north.bankKeys(); return l },
		"another's certificate":  func(l Letter) Letter { l.CA = "PEM of north"; return l },
		"another's name":         func(l Letter) Letter { l.Site = "north"; return l },
		"no signature":           func(l Letter) Letter { l.Signature = nil; return l },
		"another's invitation":   func(Letter) Letter { return *misled },
		"a token of one's own":   func(l Letter) Letter { l.Token = ownToken(t, north); return l },
		"no token":               func(l Letter) Letter { l.Token = ""; return l },
		"no kind":                func(l Letter) Letter { l.Kind = ""; return l },
		"no keys":                func(l Letter) Letter { l.Keys = nil; return l },
		"a key that is none":     func(l Letter) Letter { l.Keys = []string{"A"}; return l },
		"a letter to another":    func(l Letter) Letter { l.Peer = "north"; return l },
		"a name that is actors'": func(l Letter) Letter { l.Site = messages.Bank; return l },
	} {
		forged := forge(*answer)
		if err := west.Verify(&forged); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if _, err := west.Invite("west", urls, ""); messages.KindOf(err) != messages.Invalid {
		t.Errorf("an invitation to oneself: %v", err)
	}
	if _, err := west.Invite("East!", urls, ""); messages.KindOf(err) != messages.Invalid {
		t.Errorf("an invitation to no name: %v", err)
	}
}

func ownToken(t *testing.T, a *Authority) string {
	t.Helper()
	creds, err := a.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
