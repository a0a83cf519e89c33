package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// MaxTokens bounds the join tokens that are remembered. Expired ones make room.
const MaxTokens = 10_000

// Admit changes the join tokens of nodes: one of the fields is set. Result: the
// token, a messages.TokenState.
type Admit struct {
	Issue  *messages.TokenState
	Use    *messages.TokenUse
	Revoke string // the token's identifier
}

// Tokens are the join tokens in the order in which they were made. They must not
// be changed.
func (b *Book) Tokens() []messages.TokenState { return b.tokens }

func (b *Book) admit(c *Admit) any {
	switch {
	case c.Issue != nil:
		return b.issue(c.Issue)
	case c.Use != nil:
		return b.useToken(c.Use)
	}
	return b.revokeToken(c.Revoke)
}

// issue remembers a new token; the same again changes nothing.
func (b *Book) issue(t *messages.TokenState) any {
	if i := b.token(t.ID); i >= 0 {
		return b.tokens[i]
	}
	if len(b.tokens) >= MaxTokens {
		b.tokens = slices.DeleteFunc(slices.Clone(b.tokens), func(t messages.TokenState) bool { return t.Expires <= b.now })
	}
	if len(b.tokens) >= MaxTokens {
		return messages.Errorf(messages.Exhausted, "there are %d join tokens that have not expired; make new ones later, or with a shorter life", MaxTokens)
	}
	b.tokens = append(b.tokens, *t)
	return *t
}

// useToken gives a token to the first key that asks. The same key may ask again:
// the answer may not have reached it.
func (b *Book) useToken(u *messages.TokenUse) any {
	i := b.token(u.ID)
	if i < 0 {
		return messages.Errorf(messages.PermissionDenied, "join token %q is not one of this site; ask its operator for one", u.ID)
	}
	t := b.tokens[i]
	switch {
	case t.Revoked:
		return messages.Errorf(messages.PermissionDenied, "join token %s was revoked; ask the site's operator for another", t.ID)
	case t.Used != 0 && t.Key != u.Key:
		return messages.Errorf(messages.PermissionDenied, "join token %s was used before; ask the site's operator for another, and whether the first use was yours", t.ID)
	case t.Expires <= b.now:
		return messages.Errorf(messages.Expired, "join token %s expired at %v; ask the site's operator for another", t.ID, t.Expires)
	case t.Used == 0:
		t.Used, t.Key = b.now, u.Key
		b.setToken(i, t)
	}
	return t
}

func (b *Book) revokeToken(id string) any {
	i := b.token(id)
	if i < 0 {
		return messages.Errorf(messages.NotFound, "there is no join token %q; candor node tokens lists them", id)
	}
	t := b.tokens[i]
	t.Revoked = true
	b.setToken(i, t)
	return t
}

// setToken replaces a token, in a list of its own: images share the old one.
func (b *Book) setToken(i int, t messages.TokenState) {
	b.tokens = slices.Clone(b.tokens)
	b.tokens[i] = t
}

func (b *Book) token(id string) int {
	return slices.IndexFunc(b.tokens, func(t messages.TokenState) bool { return t.ID == id })
}
