package book

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/expect"
)

func (s *site) token(id string, expires messages.Time) {
	s.t.Helper()
	want := messages.TokenState{ID: id, Node: "n7", By: "operator", Issued: s.at, Expires: expires}
	if got := s.apply(Command{Admit: &Admit{Issue: &want}}); got != want {
		s.t.Fatalf("issued %+v", got)
	}
}

func (s *site) use(id, key string) any {
	s.t.Helper()
	return s.apply(Command{Admit: &Admit{Use: &messages.TokenUse{ID: id, Key: key}}})
}

// Only the first key that presents a token before its expiry can use the token. This key may repeat its request.
func TestTokenIsUsedOnce(t *testing.T) {
	s := newSite(t)
	s.token("join-a", 100)
	first, ok := s.use("join-a", "K1").(messages.TokenState)
	expect.Same(t, "ok", ok, true)
	expect.Same(t, "Key", first.Key, "K1", "Used", first.Used, s.at, "Node", first.Node, "n7")
	if again := s.use("join-a", "K1"); again != first {
		t.Errorf("the same key again: %+v", again)
	}
	refusal(t, s.use("join-a", "K2"), messages.PermissionDenied)
	refusal(t, s.use("join-b", "K1"), messages.PermissionDenied)
	s.passTo(100)
	refusal(t, s.use("join-a", "K1"), messages.Expired)
	if got := s.Tokens(); len(got) != 1 || got[0] != first {
		t.Errorf("the tokens are %+v", got)
	}
}

func TestTokenExpiresAndIsRevoked(t *testing.T) {
	s := newSite(t)
	s.token("join-a", 10)
	s.token("join-b", 1000)
	s.passTo(10)
	refusal(t, s.use("join-a", "K"), messages.Expired)
	before := s.Capture()
	if got := s.apply(Command{Admit: &Admit{Revoke: "join-b"}}).(messages.TokenState); !got.Revoked {
		t.Errorf("revoked: %+v", got)
	}
	refusal(t, s.use("join-b", "K"), messages.PermissionDenied)
	refusal(t, s.apply(Command{Admit: &Admit{Revoke: "join-c"}}), messages.NotFound)
	if before.Tokens[1].Revoked {
		t.Error("an image changed after it was captured")
	}
	other := New()
	copyInto(t, s.Book, other)
	if got := other.Tokens(); len(got) != 2 || !got[1].Revoked {
		t.Errorf("a restored book has tokens %+v", got)
	}
}

func TestTokensAreBounded(t *testing.T) {
	s := newSite(t)
	for i := range MaxTokens {
		s.Apply(&Command{At: 1, Admit: &Admit{Issue: &messages.TokenState{ID: fmt.Sprint("join-", i), Expires: messages.Time(50 + 50*(i%2))}}})
	}
	more := &messages.TokenState{ID: "join-more", Expires: 1000}
	refusal(t, s.Apply(&Command{At: 2, Admit: &Admit{Issue: more}}), messages.Exhausted)
	if got := s.Apply(&Command{At: 60, Admit: &Admit{Issue: more}}); got != *more || len(s.Tokens()) != MaxTokens/2+1 {
		t.Errorf("once half have expired: %+v, and %d tokens", got, len(s.Tokens()))
	}
}
