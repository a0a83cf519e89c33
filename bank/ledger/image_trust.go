package ledger

import (
	"bytes"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// copy returns a copy of the trust. Later changes to the original do not change the copy.
func (t *trust) copy() trust {
	c := *t
	c.roles, c.revoked, c.sessions, c.used = slices.Clone(t.roles), maps.Clone(t.revoked), maps.Clone(t.sessions), maps.Clone(t.used)
	c.accounts = slices.Clone(t.accounts)
	return c
}

// trust encodes or decodes the keys, sessions and used requests that are still valid at the time `now`. It leaves out
// the root of trust, which each replica has from its configuration.
func (c *codec) trust(t *trust, now messages.Time) {
	if c.reads {
		*t = trust{root: t.root, revoked: map[string]bool{}, sessions: map[uint64]*session{}, used: map[digest]messages.Time{}}
	}
	c.uint(&t.from)
	list(c, &t.roles, 3, (*codec).roleKey)
	revoked := slices.Sorted(maps.Keys(t.revoked))
	list(c, &revoked, 1, func(c *codec, key *string) {
		if c.text(key); c.reads {
			t.revoked[*key] = true
		}
	})
	sessions := slices.DeleteFunc(slices.Sorted(maps.Keys(t.sessions)), func(n uint64) bool { return t.sessions[n].expires <= now })
	list(c, &sessions, 7, func(c *codec, n *uint64) {
		if c.uint(n); c.reads {
			t.sessions[*n] = &session{}
		}
		c.session(t.sessions[*n])
	})
	used := slices.SortedFunc(maps.Keys(t.used), func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	used = slices.DeleteFunc(used, func(d digest) bool { return t.used[d] < now })
	list(c, &used, 17, func(c *codec, d *digest) {
		c.raw(d[:])
		until := t.used[*d]
		if number(c, &until); c.reads {
			t.used[*d] = until
		}
	})
	list(c, &t.accounts, 2, func(c *codec, a *successor) {
		c.text(&a.key)
		c.uint(&a.from)
	})
}

func (c *codec) roleKey(r *roleKey) {
	c.text(&r.role)
	c.text(&r.key)
	c.flag(&r.ended)
}

func (c *codec) session(s *session) {
	c.text(&s.by)
	octet(c, &s.rank)
	c.text(&s.key)
	c.text(&s.issuer)
	c.bytes(&s.public)
	number(c, &s.expires)
}
