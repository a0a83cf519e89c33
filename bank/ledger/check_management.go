package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// MaxOwners is the maximum number of owners in one request.
const MaxOwners = 100

// maxKey is the maximum length of a key in bytes, so that an identifier holds a prefix, the
// caller and the key.
const maxKey = MaxID - len(withdrawPrefix) - maxName - 1

// Check returns an error for a command that is malformed in any state of the ledger. It does not check the command's
// transfers; the function [Check] of this package does.
func (c *Command) Check() *messages.Error {
	switch c.Verb {
	case Grant:
		return checkGrant(&c.Grant)
	case Member:
		return checkMember(&c.Member)
	case Project:
		return checkProject(&c.Project)
	case Pay:
		return checkPay(&c.Pay)
	case Freeze:
		return checkFreeze(&c.Freeze)
	case Credit:
		return checkCredit(&c.Credit)
	case Withdraw:
		return checkWithdraw(&c.Withdraw)
	case Correct:
		return checkCorrect(&c.Correct)
	}
	return nil
}

func checkGrant(g *money.GrantRequest) *messages.Error {
	switch {
	case g.Expires < 0:
		return messages.Errorf(messages.Invalid, "expires: must not be negative: give an instant, or leave the field out for a grant that does not expire")
	case g.Lasts != 0 && g.Lasts < 1000:
		return messages.Errorf(messages.Invalid, "lasts: %v is too short: give a microsecond or more, or leave the field out for a grant that does not expire", g.Lasts)
	case g.Lasts != 0 && g.Expires != 0:
		return messages.Errorf(messages.Invalid, "expires, lasts: both are given: leave one of the two fields out")
	}
	return checkMovement("grant", g.Key, g.Account, g.Amount, g.Reason)
}

func checkPay(p *money.PayRequest) *messages.Error {
	if err := checkMovement("pay", p.Key, p.From, p.Amount, p.Reason); err != nil {
		return err
	}
	switch {
	case !messages.ValidFreeName(p.To):
		return badName(p.To)
	case p.From == p.To:
		return messages.Errorf(messages.Invalid, "the fields from and to name the same account %q: name two accounts", p.To)
	}
	return nil
}

func checkWithdraw(w *money.WithdrawRequest) *messages.Error {
	if w.Reason == "" {
		return noReason()
	}
	return checkMovement("withdraw", w.Key, w.Account, w.Amount, w.Reason)
}

func noReason() *messages.Error {
	return messages.Errorf(messages.Invalid, "reason is empty: say why; the account's statement shows it")
}

// checkMovement checks the fields that grants, payments and withdrawals share.
func checkMovement(verb, key string, account messages.Name, amount messages.Credits, reason string) *messages.Error {
	switch {
	case key == "" || !textual(key, maxKey):
		return messages.Errorf(messages.Invalid, "key: choose one of at most %d bytes of printable text, the same whenever this request is sent again", maxKey)
	case !messages.ValidFreeName(account):
		return badName(account)
	case amount <= 0:
		return messages.Errorf(messages.Invalid, "amount %v: %s more than 0 credits", amount, verb)
	case amount > messages.MaxCredits:
		return messages.Errorf(messages.TooLarge, "amount %v: %s at most %v credits at once", amount, verb, messages.MaxCredits)
	}
	return checkReason(reason)
}

func checkReason(reason string) *messages.Error {
	if !textual(reason, MaxReason) {
		return messages.Errorf(messages.Invalid, "reason must be at most %d bytes of printable text", MaxReason)
	}
	return nil
}

func checkCorrect(c *money.CorrectRequest) *messages.Error {
	switch {
	case c.Transfer == "" || !textual(c.Transfer, MaxID):
		return messages.Errorf(messages.Invalid, "transfer: give the identifier of the transfer to correct, as the statement shows it")
	case c.Amount < 0 || c.Amount > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "amount %v: give the amount to take back, or 0 for the whole transfer", c.Amount)
	case c.Reason == "":
		return noReason()
	}
	return checkReason(c.Reason)
}

func checkProject(p *money.ProjectRequest) *messages.Error {
	if !messages.ValidFreeName(p.Account) {
		return badName(p.Account)
	}
	if !textual(p.Title, MaxReason) {
		return messages.Errorf(messages.Invalid, "title must be at most %d bytes of printable text", MaxReason)
	}
	if len(p.Owners) > MaxOwners {
		return messages.Errorf(messages.TooLarge, "%d owners at once: name at most %d", len(p.Owners), MaxOwners)
	}
	for _, name := range p.Owners {
		if err := checkMember(&money.MemberRequest{Account: p.Account, Member: name}); err != nil {
			return err
		}
	}
	return nil
}

func checkFreeze(f *money.FreezeRequest) *messages.Error {
	if !messages.ValidFreeName(f.Account) {
		return badName(f.Account)
	}
	return checkReason(f.Reason)
}

func checkCredit(r *money.CreditRequest) *messages.Error {
	switch {
	case !messages.ValidFreeName(r.Account):
		return badName(r.Account)
	case r.Credit < 0:
		return messages.Errorf(messages.Invalid, "credit %v is negative: give how far below zero the balance may go, or 0", r.Credit)
	case r.Credit > messages.MaxCredits:
		return messages.Errorf(messages.TooLarge, "credit %v: give at most %v credits", r.Credit, messages.MaxCredits)
	}
	return checkReason(r.Reason)
}

func badName(name string) *messages.Error {
	return messages.Errorf(messages.Invalid, "account %q: a name is a letter or digit, then at most 62 letters, digits, '.', '-' and '_'", clip(name))
}
