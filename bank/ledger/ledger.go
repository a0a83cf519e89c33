package ledger

import (
	"slices"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Ledger is the state of a bank. Make one with New.
type Ledger struct {
	now      messages.Time
	rules    rules // the latest that a command was under
	journal  journal
	accounts map[messages.Name]*account
	order    []*account // in which they were opened
	issuer   *account
	projects map[messages.Name][]messages.Name // the accounts that a name is a member of, ascending
	holds    map[string]*hold                  // pending, by identifier
	expiries expiries
	dues     dues             // of grants that expire
	names    names            // of the accounts
	known    index            // of the identifiers that were answered
	held     messages.Credits // sum of the pending holds
	balances messages.Credits // sum of all but the issuer's, added up leg by leg
	done     uint64           // transfers that were done
	broken   error            // of the store; nothing is done any more
	trust    trust

	// Copies of the accounts as the last image has them, and which of them
	// are no longer right.
	copies  [][]account
	stale   []bool
	copying *sync.Mutex // images may be taken by several who only look

	// Scratch space, of no meaning between commands.
	rank   Rank          // of who made the command under way
	replay *replay       // whose records are carried out again; nil: commands are new
	made   messages.Name // who made the last hold
	steps  []step
	batch  []messages.Transfer
	moved  []*account // of which lots may have come to be returned
	buffer writer
	asking *record // the request that is being carried out, until it is written down
}

// New returns the ledger in which nothing has happened: it has the issuer's
// and the site's account.
func New() *Ledger { return Open(memory{}) }

// Open returns New with its history in a store, of which it is the only user.
func Open(s Store) *Ledger {
	l := &Ledger{
		journal:  newJournal(s),
		copying:  new(sync.Mutex),
		accounts: map[messages.Name]*account{},
		projects: map[messages.Name][]messages.Name{},
		holds:    map[string]*hold{},
		known:    newIndex(),
		rules:    firstRules,
	}
	l.issuer = l.open(messages.IssuerAccount)
	l.open(messages.SiteAccount)
	return l
}

// Result is what a command came to.
type Result struct {
	Transfers []messages.TransferResult // of Transfers, one for each
	Account   messages.AccountReply     // of the other verbs but Correct and Expire: the account after it
	Corrected messages.CorrectReply     // of Correct
	Lapsed    int                       // holds that lapsed at the command's time
	Session   messages.SessionReply     // of Session
	Error     *messages.Error           // the command as a whole was refused
}

// Apply carries out an encoded command. A command that cannot be read is
// refused in Result.Error and changes nothing; so is one that does not prove
// who asked for it, from the site's first statement of its keys on.
func (l *Ledger) Apply(command []byte) Result { return l.apply(command, l.prove) }

// ApplyOwn is Apply for what is composed with the ledger: a command of its own
// making, of which it has checked who asked.
func (l *Ledger) ApplyOwn(command []byte) Result {
	return l.apply(command, func(*Command, []byte) *messages.Error { return nil })
}

func (l *Ledger) apply(command []byte, prove func(*Command, []byte) *messages.Error) Result {
	var c Command
	if err := c.decode(command, l.batch); err != nil {
		return Result{Error: err}
	}
	if l.broken != nil {
		return l.refuseBroken()
	}
	if err := prove(&c, command); err != nil {
		return Result{Error: err}
	}
	return l.perform(&c)
}

// perform does what a command asks for whose maker is known.
func (l *Ledger) perform(c *Command) Result {
	l.rules, l.rank = max(l.rules, c.rules()), c.Rank
	result := Result{Lapsed: l.lapseBefore(c.At)}
	l.moved = l.moved[:0]
	result.Error = l.admit(c)
	switch {
	case result.Error != nil:
	case c.Verb == Transfers:
		result.Transfers = l.transfers(c)
		clear(c.Transfers) // they would keep the command's bytes alive
		l.batch = c.Transfers
	case c.Verb == Correct:
		result.Corrected, result.Error = l.correct(c.By, &c.Correct)
	case c.Verb == Keys:
		result.Error = l.learnKeys(c)
	case c.Verb == Session:
		result.Session, result.Error = l.openSession(c)
	default:
		result.Account, result.Error = l.manage(c)
	}
	if c.Asked != nil && c.Verb != Keys {
		l.Finish(result.Error == nil && !slices.Contains(keyed, requestNames[c.Verb]))
	}
	l.known.forget()
	if l.broken != nil {
		return l.refuseBroken()
	}
	return result
}

// lapseBefore lets time pass before a request is carried out: what that comes
// to is nobody's request.
func (l *Ledger) lapseBefore(at messages.Time) int {
	asking := l.asking
	l.asking = nil
	lapsed := l.advance(at)
	l.asking = asking
	return lapsed
}

// manage carries out a command about one account.
func (l *Ledger) manage(c *Command) (messages.AccountReply, *messages.Error) {
	switch c.Verb {
	case Grant:
		return l.grant(c.By, &c.Grant)
	case Member:
		return l.changeMember(c)
	case Project:
		return l.makeProject(c.By, &c.Project)
	case Pay:
		return l.pay(c)
	case Freeze:
		return l.freeze(c)
	case Credit:
		return l.setCredit(c.By, &c.Credit)
	case Withdraw:
		return l.withdraw(c.By, &c.Withdraw)
	}
	return messages.AccountReply{}, nil // Expire
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
		Debit: messages.IssuerAccount, Credit: g.Account, Amount: g.Amount, Reason: g.Reason, Expires: g.Expires,
	}
	return l.keyed(by, &t, g.Account, func() *messages.Error { return l.issue(by, &t) })
}

// issue carries out the transfer of a grant. The account is opened only once
// nothing can go wrong.
func (l *Ledger) issue(by messages.Name, t *messages.Transfer) *messages.Error {
	credit, fresh := l.accounts[t.Credit], false
	if credit == nil {
		credit, fresh = &account{name: t.Credit}, true
	}
	s := step{asked: t, debit: l.issuer, credit: credit, amount: t.Amount}
	switch {
	case t.Expires != 0 && t.Expires <= l.now:
		return messages.Errorf(messages.Expired, "the grant would expire at %v, and it is %v: give a later instant", t.Expires, l.now)
	case t.Expires != 0 && l.rules >= secondRules && strings.HasPrefix(t.Credit, messages.PeerAccountPrefix):
		return neverExpires(t.Credit)
	case t.Expires != 0 && len(credit.lots) >= MaxLots:
		return messages.Errorf(messages.Exhausted, "account %q has credits of %d expiring grants, the most there can be: grant without an expiry, or later", credit.name, MaxLots)
	}
	if err := s.fits(); err != nil {
		return err
	}
	if fresh {
		s.credit = l.openFor(by, t.Credit)
	}
	l.do(&s)
	l.commit(by, &s)
	return nil
}

// neverExpires refuses an expiry for credits that mirror those at other sites.
func neverExpires(account messages.Name) *messages.Error {
	return messages.Errorf(messages.Invalid, "account %q stands for other sites, and what it has cannot expire: grant without an expiry", clip(account))
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
	l.writeAsked()
	if debit != nil {
		r.debitLink = debit.trail.extend(l.journal.count + 1)
	}
	if credit != nil {
		r.creditLink = credit.trail.extend(l.journal.count + 1)
	}
	if r.rules = l.rules; r.by != "" {
		r.rank = l.rank
	}
	l.buffer.b = l.buffer.b[:0]
	l.buffer.record(r)
	if l.replay != nil {
		l.replay.wrote(l.buffer.b)
	}
	l.touched(r)
	number, err := l.journal.append(l.buffer.b, l.keyOf(r))
	l.fail(err)
	return number
}

// keyOf is the hash under which a record is found, 0 for none.
func (l *Ledger) keyOf(r *record) uint64 {
	if key := r.key(); key != "" {
		return l.known.hash(key)
	}
	return 0
}
