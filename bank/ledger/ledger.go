package ledger

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Ledger is the state of a bank. New creates one. Each of its fields is a part that owns a piece of the state. A part
// uses only the parts above it.
type Ledger struct {
	records  *records  // the journal, and the index of its identifiers
	accounts *accounts // accounts with their members, settings and balances
	holds    *holds    // the pending holds
	lots     *lots     // when expiring grants are due
	requests *requests // keys and sessions of the site, and the request that is being carried out

	books      *books      // carries out steps on the parts above and appends their records
	plans      *planner    // plans the step of a transfer, or refuses it
	expiry     *expiry     // lets holds lapse and returns expired grants
	chains     *chains     // carries out the verb Transfers
	management *management // carries out the verbs about one account, and the verb Correct

	batch []money.Transfer // memory that is used again for each command
}

// New returns an empty ledger in memory. It has the issuer's and the site's account only.
func New() *Ledger { return Open(memory{}) }

// Open returns an empty ledger that stores its journal in s. No other ledger may use s.
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

// Result is the outcome of a command.
type Result struct {
	Transfers []money.TransferResult // for the verb Transfers: one result for each transfer
	Account   money.AccountReply     // for the verbs about one account: the account after the command
	Corrected money.CorrectReply     // for the verb Correct
	Lapsed    int                    // holds that lapsed at the command's time
	Session   messages.SessionReply  // for the verb Session
	Error     *messages.Error        // why the whole command was refused
	Unread    bool                   // this version cannot read the command; another one may
}

// LevelOf returns the level that a replica needs to read a command; see [messages.Level]. It returns an error for a
// command that this version cannot read. A new verb, or a new form of a verb, needs a new level.
func LevelOf(command []byte) (level int, err error) {
	var c Command
	if err := c.decode(command, nil); err != nil {
		return 0, err
	}
	return max(c.level, 1), nil
}

// Apply carries out an encoded command. It sets Result.Error, and changes nothing, in two cases: it cannot read the
// command, or the command does not prove its maker although the site has stated its keys.
func (l *Ledger) Apply(command []byte) Result { return l.apply(command, l.requests.prove) }

// ApplyOwn does the same as Apply, but checks no proof. The clearing uses it for commands that it makes itself. The
// clearing has checked these commands before.
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
		clear(c.Transfers) // otherwise the texts would keep the command's bytes in memory
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

// lapseBefore moves the ledger's time forward before a request is carried out. It is called first because the records
// of lapsed holds and expired grants must stand before the record of the request. It returns how many holds have
// lapsed.
func (l *Ledger) lapseBefore(at messages.Time) int {
	heard, asking := l.requests.heard, l.requests.asking
	l.requests.heard, l.requests.asking = nil, nil
	lapsed := l.expiry.advance(at)
	l.requests.heard, l.requests.asking = heard, asking
	return lapsed
}

// Now returns the latest time of any command.
func (l *Ledger) Now() messages.Time { return l.records.now }

// Err returns the error of the store, or nil. After an error the ledger may have only half of a change, so it refuses
// all commands. The replica must start again from its image and the log.
func (l *Ledger) Err() error { return l.records.broken }

// Done reports whether a transfer with this identifier was carried out.
func (l *Ledger) Done(id string) bool {
	number := l.records.recorded(id)
	return number != 0 && l.records.record(number).what == done
}

// NextExpiry returns when the next pending hold lapses or the next grant may expire, or 0 for never.
func (l *Ledger) NextExpiry() messages.Time { return l.expiry.next() }

// Asked checks the proof of a request that the clearing is about to carry out, and returns the rank of the caller who
// made it. It writes the record of the request before the clearing writes the records of the request's effects.
func (l *Ledger) Asked(verb string, by messages.Name, r *messages.SignedRequest, now messages.Time) (Rank, *messages.Error) {
	return l.requests.asked(verb, by, r, now)
}

// Hear tells the ledger the cause of a change that the clearing makes without a request. If `by` is "", the cause is
// the passing of time. Otherwise the cause is a statement that the peer's bank `by` signed. The ledger writes a record
// of this cause before the records of the changes that it causes.
func (l *Ledger) Hear(by messages.Name, verb string, statement []byte) {
	l.requests.hear(by, verb, statement)
}

// Finish is called after a command that began with Asked or Hear. It forgets the command's request. If carriedOut is
// true, it first writes the request's record, even if nothing else changed.
func (l *Ledger) Finish(carriedOut bool) {
	if carriedOut {
		l.requests.writeAsked()
	}
	l.requests.heard, l.requests.asking = nil, nil
}
