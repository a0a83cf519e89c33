package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// MaxTokens is the maximum number of join tokens that are remembered. Expired tokens are removed first.
const MaxTokens = 10_000

// Admit changes the join tokens of nodes. Exactly one field is set. Result: the token, a messages.TokenState.
type Admit struct {
	Issue  *messages.TokenState
	Use    *messages.TokenUse
	Revoke string // the token's identifier
}

type tokens struct {
	issued []messages.TokenState // in the order of their creation
	places map[string]int        // position in issued, by identifier
}

func (s *tokens) admit(c *Admit, now messages.Time) (messages.TokenState, error) {
	switch {
	case c.Issue != nil:
		return s.issue(c.Issue, now)
	case c.Use != nil:
		return s.use(c.Use, now)
	}
	return s.revoke(c.Revoke)
}

// issue stores a new token. If the token is already stored, nothing changes.
func (s *tokens) issue(t *messages.TokenState, now messages.Time) (messages.TokenState, error) {
	if i := s.find(t.ID); i >= 0 {
		return s.issued[i], nil
	}
	if len(s.issued) >= MaxTokens {
		s.enter(slices.DeleteFunc(s.issued, func(t messages.TokenState) bool { return t.Expires <= now }))
	}
	if len(s.issued) >= MaxTokens {
		return messages.TokenState{}, messages.Errorf(messages.Exhausted, "there are %d join tokens that have not expired; make new ones later, or with a shorter life", MaxTokens)
	}
	s.places[t.ID] = len(s.issued)
	s.issued = append(s.issued, *t)
	return *t, nil
}

func (s *tokens) enter(all []messages.TokenState) {
	s.issued, s.places = all, make(map[string]int, len(all))
	for i := range all {
		s.places[all[i].ID] = i
	}
}

// use gives a token to the first key that asks for it. The same key may ask again, because the answer may have been
// lost.
func (s *tokens) use(u *messages.TokenUse, now messages.Time) (messages.TokenState, error) {
	i := s.find(u.ID)
	if i < 0 {
		return messages.TokenState{}, messages.Errorf(messages.PermissionDenied, "join token %q does not belong to this site; ask the site's operator for a join token", u.ID)
	}
	t := s.issued[i]
	switch {
	case t.Revoked:
		return messages.TokenState{}, messages.Errorf(messages.PermissionDenied, "join token %s was revoked; ask the site's operator for another", t.ID)
	case t.Used != 0 && t.Key != u.Key:
		return messages.TokenState{}, messages.Errorf(messages.PermissionDenied, "join token %s was used before; ask the site's operator for another token; if the first use was not yours, tell the operator", t.ID)
	case t.Expires <= now:
		return messages.TokenState{}, messages.Errorf(messages.Expired, "join token %s expired at %v; ask the site's operator for another", t.ID, t.Expires)
	case t.Used == 0:
		t.Used, t.Key = now, u.Key
		s.issued[i] = t
	}
	return t, nil
}

func (s *tokens) revoke(id string) (messages.TokenState, error) {
	i := s.find(id)
	if i < 0 {
		return messages.TokenState{}, messages.Errorf(messages.NotFound, "there is no join token %q; `candor node tokens` lists the join tokens", id)
	}
	s.issued[i].Revoked = true
	return s.issued[i], nil
}

func (s *tokens) find(id string) int {
	if i, ok := s.places[id]; ok {
		return i
	}
	return -1
}
