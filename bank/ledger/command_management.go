package ledger

import "github.com/candor-grid/candor/messages"

// management writes what a command other than Transfers asks for.
func (w *writer) management(c *Command) {
	switch c.Verb {
	case Grant:
		w.text(c.Grant.Key)
		w.text(c.Grant.Account)
		w.int(int64(c.Grant.Amount))
		w.text(c.Grant.Reason)
		w.int(int64(c.Grant.Expires))
	case Member:
		w.member(&c.Member)
	case Project:
		w.text(c.Project.Account)
		w.text(c.Project.Title)
		w.uint(uint64(len(c.Project.Owners)))
		for _, name := range c.Project.Owners {
			w.text(name)
		}
	case Pay:
		w.text(c.Pay.Key)
		w.text(c.Pay.From)
		w.text(c.Pay.To)
		w.int(int64(c.Pay.Amount))
		w.text(c.Pay.Reason)
	case Freeze:
		w.text(c.Freeze.Account)
		w.flag(c.Freeze.Frozen)
		w.text(c.Freeze.Reason)
	case Credit:
		w.text(c.Credit.Account)
		w.int(int64(c.Credit.Credit))
		w.text(c.Credit.Reason)
	case Withdraw:
		w.text(c.Withdraw.Key)
		w.text(c.Withdraw.Account)
		w.int(int64(c.Withdraw.Amount))
		w.text(c.Withdraw.Reason)
	case Correct:
		w.text(c.Correct.Transfer)
		w.int(int64(c.Correct.Amount))
		w.text(c.Correct.Reason)
	}
}

func (w *writer) member(m *messages.MemberRequest) {
	w.text(m.Account)
	w.text(m.Member)
	w.flag(m.Remove)
	if w.flag(m.Role != nil); m.Role != nil {
		w.byte(byte(*m.Role))
	}
	if w.flag(m.Limit != nil); m.Limit != nil {
		w.int(int64(*m.Limit))
	}
}

// management reads what a command other than Transfers asks for.
func (r *reader) management(c *Command) {
	switch c.Verb {
	case Grant:
		c.Grant = messages.GrantRequest{Key: r.text(), Account: r.text(), Amount: r.credits(), Reason: r.text()}
		if r.version > 1 {
			c.Grant.Expires = messages.Time(r.int())
		}
	case Member:
		r.member(&c.Member)
	case Project:
		c.Project = messages.ProjectRequest{Account: r.text(), Title: r.text(), Owners: r.names()}
	case Pay:
		c.Pay = messages.PayRequest{Key: r.text(), From: r.text(), To: r.text(), Amount: r.credits(), Reason: r.text()}
	case Freeze:
		c.Freeze = messages.FreezeRequest{Account: r.text(), Frozen: r.flag(), Reason: r.text()}
	case Credit:
		c.Credit = messages.CreditRequest{Account: r.text(), Credit: r.credits(), Reason: r.text()}
	case Withdraw:
		c.Withdraw = messages.WithdrawRequest{Key: r.text(), Account: r.text(), Amount: r.credits(), Reason: r.text()}
	case Correct:
		c.Correct = messages.CorrectRequest{Transfer: r.text(), Amount: r.credits(), Reason: r.text()}
	}
}

func (r *reader) credits() messages.Credits { return messages.Credits(r.int()) }

func (r *reader) member(m *messages.MemberRequest) {
	*m = messages.MemberRequest{Account: r.text(), Member: r.text(), Remove: r.flag()}
	if r.version < 2 {
		return
	}
	if r.flag() {
		role := messages.Role(r.byte())
		m.Role = &role
	}
	if r.flag() {
		limit := r.credits()
		m.Limit = &limit
	}
}

// names reads a list of names; each takes at least a byte.
func (r *reader) names() []messages.Name {
	n := r.uint()
	if n > uint64(len(r.s)) {
		r.fail()
		return nil
	}
	var list []messages.Name
	for range n {
		list = append(list, r.text())
	}
	return list
}
