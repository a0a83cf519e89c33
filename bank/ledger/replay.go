package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

var (
	errRecord  = errors.New("cannot be read")
	errDiffers = errors.New("does not follow from the records before it")
	errTime    = errors.New("is older than the one before")
)

// replay carries out the commands of a journal a second time. It finds out which command wrote a record, or several
// records in a row, and applies this command to its own ledger. This ledger must write the same records, byte by byte.
// So replay needs no rules of its own: each rule is written only once, in the ledger.
type replay struct {
	ledger *Ledger
	count  uint64   // number of records processed
	group  []record // the records of one command, until now
	raw    [][]byte // encoded form of the records in group
	ahead  [][]byte // written records that were not compared with the journal yet

	settler Settler     // nil if there are no settlements with other sites
	basis   *uint64     // counter of the records that follow from the last cause
	report  ProofReport // counts of what was derived
}

// replayInto returns a replay that continues a ledger. Until the replay ends, the ledger takes no other commands.
func replayInto(l *Ledger) *replay {
	l.records.replay = &replay{ledger: l, count: l.records.journal.count}
	return l.records.replay
}

// add processes the next record. A fault may be found only when later records are read, so the error may name an
// earlier record.
func (p *replay) add(raw []byte) error {
	p.count++
	rec, err := p.ledger.records.next(p.count, raw)
	if err != nil {
		return err
	}
	if p.ledger.requests.trust.root != nil {
		return p.derive(&rec, raw)
	}
	if len(p.group) > 0 && !p.continues(&rec) {
		if err := p.carryOut(p.count - 1); err != nil {
			return err
		}
	}
	if len(p.group) == 0 {
		p.ledger.expiry.advance(rec.at)
		if len(p.ahead) > 0 {
			return p.expect(p.count, raw, nil)
		}
	}
	if rec.states() {
		p.askAgain(&rec)
		return p.expect(p.count, raw, nil)
	}
	p.group, p.raw = append(p.group, rec), append(p.raw, bytes.Clone(raw))
	if p.awaits() {
		return nil
	}
	return p.carryOut(p.count)
}

// end is called when the journal has no more records. It returns a fault that was not found before.
func (p *replay) end() error {
	defer func() { p.ledger.records.replay = nil }()
	if len(p.group) > 0 {
		if err := p.carryOut(p.count); err != nil {
			return err
		}
	}
	if len(p.ahead) > 0 {
		return p.fault(p.count+1, errors.New("is missing: the records before this record require it"))
	}
	return nil
}

func (p *replay) fault(number uint64, why error) error {
	return fmt.Errorf("record %d %w", number, why)
}

// A group of records was written by one command. carryOut carries out the same command again in the replayed ledger.
// The argument `last` is the number of the group's last record.
func (p *replay) carryOut(last uint64) error {
	number := last - uint64(len(p.group)) + 1
	c, err := p.command()
	if err != nil {
		return p.fault(number, err)
	}
	if first := &p.group[0]; first.stamp.session != 0 {
		c.Proof = &messages.TransferProof{Session: first.stamp.session}
		for i := range p.group {
			c.Proof.Marks = append(c.Proof.Marks, p.group[i].stamp.mark[:]...)
		}
	}
	apply := p.ledger.ApplyOwn
	if p.ledger.requests.trust.root != nil {
		apply = p.ledger.Apply
	}
	why := reason(apply(c.Encode()))
	for i, raw := range p.raw {
		if err := p.expect(number+uint64(i), raw, why); err != nil {
			return err
		}
	}
	p.group, p.raw = p.group[:0], p.raw[:0]
	return nil
}

// reason returns the first refusal in a result.
func reason(r Result) *messages.Error {
	for i := range r.Transfers {
		if r.Error == nil {
			r.Error = r.Transfers[i].Error
		}
	}
	return r.Error
}

// The ledger of the replay carries out each command of the journal again, and so writes records. If the journal is
// correct, these records are equal to the journal's records. expect compares a record of the journal with the next
// record that the ledger wrote. If the ledger refused the command, `why` is the refusal; otherwise it is nil.
func (p *replay) expect(number uint64, raw []byte, why *messages.Error) error {
	switch {
	case len(p.ahead) > 0 && bytes.Equal(p.ahead[0], raw):
		p.ahead = p.ahead[1:]
		p.found()
		return p.ledger.records.broken
	case p.ledger.records.broken != nil:
		return p.ledger.records.broken
	case why != nil:
		return p.fault(number, fmt.Errorf("%w: %s", errDiffers, why.Message))
	}
	return p.fault(number, errDiffers)
}

func (p *replay) wrote(raw []byte) { p.ahead = append(p.ahead, bytes.Clone(raw)) }

// awaits reports whether the next record may belong to the same command as the records in p.group.
func (p *replay) awaits() bool {
	last := &p.group[len(p.group)-1]
	switch last.what {
	case opened:
		return true
	case membership:
		return !last.remove
	case changed:
		return last.change.setting == memberRole
	}
	return last.linked() && len(p.group) < MaxBatch
}

// states reports whether a record is a statement or a request. Such a record changes no account itself.
func (r *record) states() bool { return r.what == trusted || r.what == requested || r.what == said }

// linked reports whether another transfer of the same chain follows the record's transfer.
func (r *record) linked() bool { return (r.what == done || r.what == refused) && r.asked.Linked }

// The records in p.group follow from one command. continues reports whether a further record may follow from the same
// command.
func (p *replay) continues(rec *record) bool {
	last := &p.group[len(p.group)-1]
	switch {
	case rec.states() || rec.at != last.at || rec.by != last.by || rec.rank != last.rank:
		return false
	case last.linked():
		return rec.what == done || rec.what == refused
	case last.what == opened && rec.what == done:
		return originOf(rec.asked.ID) == granted && rec.asked.Credit == last.account
	case rec.what != changed:
		return false
	case last.what == opened:
		return rec.change.setting == asProject && rec.change.account == last.account
	}
	return last.part() == rec.part() && rec.change.setting > last.change.setting
}

// part returns the account that a record changes, and the member if it changes a member of the account.
func (r *record) part() [2]messages.Name {
	return [2]messages.Name{r.account + r.change.account, r.member + r.change.member}
}

func (p *replay) command() (Command, error) {
	first, last := &p.group[0], &p.group[len(p.group)-1]
	c := Command{At: first.at, By: first.by, Rank: first.rank}
	switch first.what {
	case opened:
		return p.opening(c, last)
	case membership, changed:
		return p.changing(c)
	case done, refused:
		return p.moving(c)
	}
	return c, errors.New("is of a hold that was not due then")
}

// opening returns the command that opened an account: a grant, or the creation of a project.
func (p *replay) opening(c Command, last *record) (Command, error) {
	switch last.what {
	case done:
		return p.movement(c, last)
	case changed:
		c.Verb, c.Project = Project, money.ProjectRequest{Account: last.change.account, Title: last.change.text}
		return c, nil
	}
	return c, errors.New("opens an account without a grant or project")
}

func (p *replay) changing(c Command) (Command, error) {
	c.Verb = Member
	for i := range p.group {
		rec := &p.group[i]
		part := rec.part()
		c.Member.Account, c.Member.Member = part[0], part[1]
		switch ch := &rec.change; ch.setting {
		case 0:
			c.Member.Remove = rec.remove
		case memberRole:
			role := money.Role(ch.number)
			c.Member.Role = &role
		case memberLimit:
			limit := messages.Credits(ch.number)
			c.Member.Limit = &limit
		case asProject:
			c.Verb, c.Project = Project, money.ProjectRequest{Account: ch.account, Title: ch.text}
		case freeze:
			c.Verb, c.Freeze = Freeze, money.FreezeRequest{Account: ch.account, Frozen: freezer(ch.number) != thawed, Reason: ch.text}
		case creditLimit:
			c.Verb, c.Credit = Credit, money.CreditRequest{Account: ch.account, Credit: messages.Credits(ch.number), Reason: ch.text}
		default:
			return c, errDiffers
		}
	}
	return c, nil
}

// p.group has the records that one command wrote. moving returns this command. Either the command had a chain of
// transfers with their own identifiers, or the bank made the transfer, and its identifier, from another request such as
// a grant.
func (p *replay) moving(c Command) (Command, error) {
	if originOf(p.group[0].asked.ID) != ordinary {
		return p.movement(c, &p.group[0])
	}
	c.Verb = Transfers
	for i := range p.group {
		c.Transfers = append(c.Transfers, p.group[i].asked)
	}
	return c, nil
}

// movement returns the command of a transfer whose identifier the bank made from the caller and the key.
func (p *replay) movement(c Command, rec *record) (Command, error) {
	t := &rec.asked
	key := func(prefix string) string { return strings.TrimPrefix(t.ID, prefix+c.By+"/") }
	switch originOf(t.ID) {
	case granted:
		c.Verb, c.Grant = Grant, money.GrantRequest{Key: key(grantPrefix), Account: t.Credit, Amount: t.Amount, Reason: t.Reason, Expires: t.Expires, Lasts: t.Timeout}
	case paid:
		c.Verb, c.Pay = Pay, money.PayRequest{Key: key(payPrefix), From: t.Debit, To: t.Credit, Amount: t.Amount, Reason: t.Reason}
	case withdrawn:
		c.Verb, c.Withdraw = Withdraw, money.WithdrawRequest{Key: key(withdrawPrefix), Account: t.Debit, Amount: t.Amount, Reason: t.Reason}
	case corrected:
		c.Verb, c.Correct = Correct, money.CorrectRequest{Transfer: t.Pending, Amount: t.Amount, Reason: t.Reason}
	default:
		return c, errors.New("returns a grant that was not due then")
	}
	return c, nil
}

// askAgain replays a request or statement of the journal: the ledger writes its record again. askAgain does not check
// the proof of the request.
func (p *replay) askAgain(rec *record) {
	p.ledger.records.rank = rec.rank
	if rec.what != trusted {
		p.ledger.requests.asking = rec
		p.ledger.requests.writeAsked()
		return
	}
	var k messages.SiteKeys
	if wire.Unmarshal(rec.signed.Payload, wire.Msgpack, &k) != nil {
		return // `expect` then reports that the record is missing
	}
	number, t := p.ledger.records.write(rec, nil, nil), &p.ledger.requests.trust
	t.learn(&k)
	t.succeed(k.Succession, number)
	if t.from == 0 {
		t.from = number
	}
}
