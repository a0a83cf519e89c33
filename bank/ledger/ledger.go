package ledger

import "github.com/candor-grid/candor/messages"

// Ledger is the state of a bank. Make one with New.
type Ledger struct {
	now      messages.Time
	journal  journal
	accounts map[messages.Name]*account
	order    []*account // in which they were opened
	issuer   *account
	projects map[messages.Name][]messages.Name // the accounts that a name is a member of, ascending
	holds    map[string]*hold                  // pending, by identifier
	expiries expiries
	lapsed   map[string]bool  // holds that came to their expiry
	known    index            // of the identifiers that were answered
	held     messages.Credits // sum of the pending holds
	done     uint64           // transfers that were done

	// Scratch space, of no meaning between commands.
	steps  []step
	batch  []messages.Transfer
	buffer writer
}

// New returns the ledger in which nothing has happened: it has the issuer's
// and the site's account.
func New() *Ledger {
	l := &Ledger{
		accounts: map[messages.Name]*account{},
		projects: map[messages.Name][]messages.Name{},
		holds:    map[string]*hold{},
		lapsed:   map[string]bool{},
		known:    newIndex(),
	}
	l.issuer = l.open(messages.IssuerAccount)
	l.open(messages.SiteAccount)
	return l
}

// Result is what a command came to.
type Result struct {
	Transfers []messages.TransferResult // of Transfers, one for each
	Account   messages.AccountReply     // of Grant and Member: the account after it
	Lapsed    int                       // holds that lapsed at the command's time
	Error     *messages.Error           // the command as a whole was refused
}

// Apply carries out an encoded command. A command that cannot be read is
// refused in Result.Error and changes nothing.
func (l *Ledger) Apply(command []byte) Result {
	var c Command
	if err := c.decode(command, l.batch); err != nil {
		return Result{Error: err}
	}
	result := Result{Lapsed: l.advance(c.At)}
	switch c.Verb {
	case Transfers:
		result.Transfers = l.transfers(c.By, c.Transfers)
		clear(c.Transfers) // they would keep the command's bytes alive
		l.batch = c.Transfers
	case Grant:
		result.Account, result.Error = l.grant(c.By, &c.Grant)
	case Member:
		result.Account, result.Error = l.member(c.By, &c.Member)
	}
	return result
}

// Now returns the latest time that the ledger was given.
func (l *Ledger) Now() messages.Time { return l.now }

// grant issues credits to an account, which it opens if need be.
func (l *Ledger) grant(by messages.Name, g *messages.GrantRequest) (messages.AccountReply, *messages.Error) {
	if err := CheckGrant(g); err != nil {
		return messages.AccountReply{}, err
	}
	t := messages.Transfer{
		ID: grantPrefix + by + "/" + g.Key, Kind: messages.Posted,
		Debit: messages.IssuerAccount, Credit: g.Account, Amount: g.Amount, Reason: g.Reason,
	}
	if l.recorded(t.ID) != 0 {
		return l.reply(g.Account, l.recall(&t).Error)
	}
	if err := l.issue(by, &t); err != nil {
		l.known.add(t.ID, l.write(&record{what: refused, at: l.now, by: by, asked: t, refusal: *err}, nil, nil))
		return messages.AccountReply{}, err
	}
	return l.reply(g.Account, nil)
}

// issue carries out the transfer of a grant. The account is opened only once
// nothing can go wrong.
func (l *Ledger) issue(by messages.Name, t *messages.Transfer) *messages.Error {
	credit, fresh := l.accounts[t.Credit], false
	if credit == nil {
		credit, fresh = &account{name: t.Credit}, true
	}
	s := step{asked: t, debit: l.issuer, credit: credit, amount: t.Amount}
	if err := s.fits(); err != nil {
		return err
	}
	if fresh {
		s.credit = l.open(t.Credit)
		l.write(&record{what: opened, at: l.now, by: by, account: t.Credit}, nil, nil)
	}
	l.do(&s)
	l.commit(by, &s)
	return nil
}

// CheckGrant returns what is wrong with a grant whatever the state of the
// ledger, or nil.
func CheckGrant(g *messages.GrantRequest) *messages.Error {
	switch {
	case g.Key == "" || !textual(g.Key, MaxID-len(grantPrefix)-maxName-1):
		return messages.Errorf(messages.Invalid, "key: choose one of at most 184 bytes of printable text, the same whenever this grant is sent again")
	case !messages.ValidName(g.Account):
		return badName(g.Account)
	case !textual(g.Reason, MaxReason):
		return messages.Errorf(messages.Invalid, "reason must be at most %d bytes of printable text", MaxReason)
	case g.Amount <= 0:
		return messages.Errorf(messages.Invalid, "amount %v: grant more than 0 credits", g.Amount)
	case g.Amount > messages.MaxCredits:
		return messages.Errorf(messages.TooLarge, "amount %v: grant at most %v credits at once", g.Amount, messages.MaxCredits)
	}
	return nil
}

// CheckMember returns what is wrong with a change of membership whatever the
// state of the ledger, or nil.
func CheckMember(m *messages.MemberRequest) *messages.Error {
	for _, name := range []messages.Name{m.Account, m.Member} {
		if !messages.ValidName(name) {
			return badName(name)
		}
	}
	if m.Account == m.Member {
		return messages.Errorf(messages.Invalid, "account %q need not be its own member: name another", m.Account)
	}
	return nil
}

func badName(name string) *messages.Error {
	return messages.Errorf(messages.Invalid, "account %q: a name is a lower-case letter, then at most 62 of a-z, 0-9, '-' and '_'", clip(name))
}

// member adds a member to an account, or removes it. It is idempotent.
func (l *Ledger) member(by messages.Name, m *messages.MemberRequest) (messages.AccountReply, *messages.Error) {
	if err := CheckMember(m); err != nil {
		return messages.AccountReply{}, err
	}
	a, err := l.find(m.Account)
	if err != nil {
		return messages.AccountReply{}, err
	}
	if !m.Remove && len(a.members) >= MaxMembers && !a.has(m.Member) {
		return messages.AccountReply{}, messages.Errorf(messages.Exhausted, "account %q has %d members, the most there can be: remove one first", a.name, MaxMembers)
	}
	if l.setMember(a, m.Member, m.Remove) {
		l.write(&record{what: membership, at: l.now, by: by, account: a.name, member: m.Member, remove: m.Remove}, nil, nil)
	}
	return a.reply(), nil
}

func (l *Ledger) reply(name messages.Name, err *messages.Error) (messages.AccountReply, *messages.Error) {
	if err != nil {
		return messages.AccountReply{}, err
	}
	return l.accounts[name].reply(), nil
}

// write appends a record and enters it on the statements of the accounts
// whose standing it changed, if not nil. It returns the record's number.
func (l *Ledger) write(r *record, debit, credit *account) uint64 {
	l.buffer.b = l.buffer.b[:0]
	l.buffer.record(r)
	number := l.journal.append(l.buffer.b)
	if debit != nil {
		debit.entries = append(debit.entries, number)
	}
	if credit != nil {
		credit.entries = append(credit.entries, number)
	}
	return number
}

// record decodes a record that this ledger wrote.
func (l *Ledger) record(number uint64) record {
	rec, _ := decodeRecord(l.journal.at(number))
	return rec
}
