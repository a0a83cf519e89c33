package ledger

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Ledger is the state of a bank. Make one with New. Each part has a piece of the
// state, and knows those before it and no others.
type Ledger struct {
	records  *records  // the journal, and what is found in it by identifier
	accounts *accounts // with their members, settings and balances
	holds    *holds    // that are pending
	lots     *lots     // when credits of expiring grants are due
	requests *requests // whom the ledger believes, and who asks now

	books      *books      // carries out steps on all of the above and writes them down
	plans      *planner    // says which step a transfer is, or why it is refused
	expiry     *expiry     // lets holds lapse and grants return as time passes
	chains     *chains     // the verb Transfers
	management *management // the verbs about one account, and Correct

	batch []messages.Transfer // its space is used again for each command
}

// New returns the ledger in which nothing has happened: it has the issuer's
// and the site's account.
func New() *Ledger { return Open(memory{}) }

// Open returns New with its history in a store, of which it is the only user.
func Open(s Store) *Ledger {
	l := &Ledger{records: newRecords(s), accounts: newAccounts(), holds: newHolds(), lots: &lots{}}
	l.requests = &requests{records: l.records}
	l.books = &books{records: l.records, accounts: l.accounts, holds: l.holds, lots: l.lots, requests: l.requests}
	l.plans = &planner{records: l.records, accounts: l.accounts, holds: l.holds}
	l.expiry = &expiry{records: l.records, accounts: l.accounts, holds: l.holds, lots: l.lots, books: l.books}
	l.chains = &chains{records: l.records, books: l.books, plans: l.plans, expiry: l.expiry}
	l.management = &management{records: l.records, accounts: l.accounts, lots: l.lots, books: l.books, plans: l.plans, expiry: l.expiry}
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
	Unread    bool                      // it was refused because it cannot be read here; another build may read it
}

// Readable returns an error for a command that Apply could not read.
func Readable(command []byte) error {
	if err := new(Command).decode(command, nil); err != nil {
		return err
	}
	return nil
}

// Apply carries out an encoded command. A command that cannot be read is
// refused in Result.Error and changes nothing; so is one that does not prove
// who asked for it, from the site's first statement of its keys on.
func (l *Ledger) Apply(command []byte) Result { return l.apply(command, l.requests.prove) }

// ApplyOwn is Apply for what is composed with the ledger: a command of its own
// making, of which it has checked who asked.
func (l *Ledger) ApplyOwn(command []byte) Result {
	return l.apply(command, func(*Command, []byte) *messages.Error { return nil })
}

func (l *Ledger) apply(command []byte, prove func(*Command, []byte) *messages.Error) Result {
	var c Command
	if err := c.decode(command, l.batch); err != nil {
		return Result{Error: err, Unread: true}
	}
	if l.records.broken != nil {
		return Result{Error: l.records.refusal()}
	}
	if err := prove(&c, command); err != nil {
		return Result{Error: err}
	}
	return l.perform(&c)
}

// perform does what a command asks for whose maker is known.
func (l *Ledger) perform(c *Command) Result {
	l.records.rank = c.Rank
	result := Result{Lapsed: l.lapseBefore(c.At)}
	l.lots.moved = l.lots.moved[:0]
	if result.Error = l.admit(c); result.Error == nil {
		result.Error = c.Check()
	}
	switch {
	case result.Error != nil:
	case c.Verb == Transfers:
		result.Transfers = l.chains.run(c)
		clear(c.Transfers) // they would keep the command's bytes alive
		l.batch = c.Transfers
	case c.Verb == Correct:
		result.Corrected, result.Error = l.management.correct(c.By, &c.Correct)
	case c.Verb == Keys:
		result.Error = l.requests.learnKeys(c)
	case c.Verb == Session:
		result.Session, result.Error = l.requests.openSession(c)
	default:
		result.Account, result.Error = l.management.carryOut(c)
	}
	if c.Asked != nil && c.Verb != Keys {
		l.Finish(result.Error == nil && !slices.Contains(keyed, requestNames[c.Verb]))
	}
	l.records.known.forget()
	if l.records.broken != nil {
		return Result{Error: l.records.refusal()}
	}
	return result
}

// lapseBefore lets time pass before a request is carried out. The records of holds
// and grants that end are written before the record of the request.
func (l *Ledger) lapseBefore(at messages.Time) int {
	heard, asking := l.requests.heard, l.requests.asking
	l.requests.heard, l.requests.asking = nil, nil
	lapsed := l.expiry.advance(at)
	l.requests.heard, l.requests.asking = heard, asking
	return lapsed
}

// Now returns the latest time that the ledger was given.
func (l *Ledger) Now() messages.Time { return l.records.now }

// Err returns why the ledger does nothing any more: its store failed. What it
// holds may then be half of a change. The replica is to be ended and started
// again, from its image and the log; its files are as they were.
func (l *Ledger) Err() error { return l.records.broken }

// Done reports whether a transfer was carried out under an identifier, however
// long ago.
func (l *Ledger) Done(id string) bool {
	number := l.records.recorded(id)
	return number != 0 && l.records.record(number).what == done
}

// NextExpiry returns when the next pending hold lapses or a grant may expire,
// 0 if none will.
func (l *Ledger) NextExpiry() messages.Time { return l.expiry.next() }

// Asked checks the proof of a request that is about to be carried out by what is
// composed with the ledger, and returns the rank of who made it. The record of the
// proof stands before the first record of what comes of it.
func (l *Ledger) Asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (Rank, *messages.Error) {
	return l.requests.asked(verb, by, r, now)
}

// Hear takes what is about to be carried out without a request: what a peer's bank
// signed, or, by nobody, what the clearing does as time passes. It is written down before
// the first record of what comes of it.
func (l *Ledger) Hear(by messages.Name, verb string, statement []byte) {
	l.requests.hear(by, verb, statement)
}

// Finish ends the carrying out of what was Asked or Heard. What was carried out is
// written down, whatever it changed.
func (l *Ledger) Finish(carriedOut bool) {
	if carriedOut {
		l.requests.writeAsked()
	}
	l.requests.heard, l.requests.asking = nil, nil
}
