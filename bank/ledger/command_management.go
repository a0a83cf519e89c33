package ledger

import "github.com/candor-grid/candor/messages/money"

// management encodes or decodes the request of a command with a verb other than Transfers.
func (c *codec) management(cmd *Command) {
	switch cmd.Verb {
	case Grant:
		g := &cmd.Grant
		c.text(&g.Key)
		c.text(&g.Account)
		number(c, &g.Amount)
		c.text(&g.Reason)
		number(c, &g.Expires)
		number(c, &g.Lasts)
	case Member:
		c.member(&cmd.Member)
	case Project:
		c.text(&cmd.Project.Account)
		c.text(&cmd.Project.Title)
		list(c, &cmd.Project.Owners, 1, (*codec).text)
	case Pay:
		p := &cmd.Pay
		c.text(&p.Key)
		c.text(&p.From)
		c.text(&p.To)
		number(c, &p.Amount)
		c.text(&p.Reason)
	case Freeze:
		c.text(&cmd.Freeze.Account)
		c.flag(&cmd.Freeze.Frozen)
		c.text(&cmd.Freeze.Reason)
	case Credit:
		c.text(&cmd.Credit.Account)
		number(c, &cmd.Credit.Credit)
		c.text(&cmd.Credit.Reason)
	case Withdraw:
		w := &cmd.Withdraw
		c.text(&w.Key)
		c.text(&w.Account)
		number(c, &w.Amount)
		c.text(&w.Reason)
	case Correct:
		c.text(&cmd.Correct.Transfer)
		number(c, &cmd.Correct.Amount)
		c.text(&cmd.Correct.Reason)
	}
}

func (c *codec) member(m *money.MemberRequest) {
	c.text(&m.Account)
	c.text(&m.Member)
	c.flag(&m.Remove)
	optional(c, &m.Role, octet)
	optional(c, &m.Limit, number)
}

// optional encodes or decodes an optional value. First comes a flag that says whether *v is nil. If it is not nil, the
// value follows.
func optional[T any](c *codec, v **T, value func(*codec, *T)) {
	given := *v != nil
	if c.flag(&given); !given {
		return
	}
	if c.reads {
		*v = new(T)
	}
	value(c, *v)
}
