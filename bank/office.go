package bank

import (
	"context"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// rank is the office of a caller, which the ledger takes the leader's word for.
func (b *Bank) rank(caller messages.Name) ledger.Rank {
	switch {
	case b.operators[caller]:
		return ledger.Operator
	case b.services[caller]:
		return ledger.Service
	}
	return ledger.User
}

// manage commits a command about one account, unless what it asks for was
// found to be wrong.
func (b *Bank) manage(ctx context.Context, caller messages.Name, wrong *messages.Error, c ledger.Command) (messages.AccountReply, error) {
	if wrong != nil {
		return messages.AccountReply{}, wrong
	}
	c.By, c.Rank = caller, b.rank(caller)
	result, err := b.propose(ctx, &c)
	return result.Account, err
}

// owner refuses whoever can own no account: a service. Whether a user owns the
// one it names is for the ledger to say.
func (b *Bank) owner(caller messages.Name, what string) error {
	if b.rank(caller) != ledger.Service {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "%q may not %s: only owners and operators may", caller, what)
}

// member changes who has which part in a project.
func (b *Bank) member(ctx context.Context, caller messages.Name, r messages.MemberRequest) (messages.AccountReply, error) {
	if err := b.owner(caller, "change members"); err != nil {
		return messages.AccountReply{}, err
	}
	return b.manage(ctx, caller, ledger.CheckMember(&r), ledger.Command{Verb: ledger.Member, Member: r})
}

// pay moves credits on the word of who owns them.
func (b *Bank) pay(ctx context.Context, caller messages.Name, r messages.PayRequest) (messages.AccountReply, error) {
	if err := b.owner(caller, "pay"); err != nil {
		return messages.AccountReply{}, err
	}
	r.From = own(caller, r.From)
	return b.manage(ctx, caller, ledger.CheckPay(&r), ledger.Command{Verb: ledger.Pay, Pay: r})
}

// freeze freezes an account or thaws it.
func (b *Bank) freeze(ctx context.Context, caller messages.Name, r messages.FreezeRequest) (messages.AccountReply, error) {
	if err := b.owner(caller, "freeze accounts"); err != nil {
		return messages.AccountReply{}, err
	}
	return b.manage(ctx, caller, ledger.CheckFreeze(&r), ledger.Command{Verb: ledger.Freeze, Freeze: r})
}

// project makes a project.
func (b *Bank) project(ctx context.Context, caller messages.Name, r messages.ProjectRequest) (messages.AccountReply, error) {
	if err := b.operator(caller, "make projects"); err != nil {
		return messages.AccountReply{}, err
	}
	return b.manage(ctx, caller, ledger.CheckProject(&r), ledger.Command{Verb: ledger.Project, Project: r})
}

// credit says how far below zero an account may go.
func (b *Bank) credit(ctx context.Context, caller messages.Name, r messages.CreditRequest) (messages.AccountReply, error) {
	if err := b.operator(caller, "give credit"); err != nil {
		return messages.AccountReply{}, err
	}
	return b.manage(ctx, caller, ledger.CheckCredit(&r), ledger.Command{Verb: ledger.Credit, Credit: r})
}

// takeBack takes credits back to the issuer.
func (b *Bank) takeBack(ctx context.Context, caller messages.Name, r messages.WithdrawRequest) (messages.AccountReply, error) {
	if err := b.operator(caller, "withdraw credits"); err != nil {
		return messages.AccountReply{}, err
	}
	return b.manage(ctx, caller, ledger.CheckWithdraw(&r), ledger.Command{Verb: ledger.Withdraw, Withdraw: r})
}

// correct takes an earlier transfer back by a new one.
func (b *Bank) correct(ctx context.Context, caller messages.Name, r messages.CorrectRequest) (messages.CorrectReply, error) {
	if err := b.operator(caller, "correct transfers"); err != nil {
		return messages.CorrectReply{}, err
	}
	if err := ledger.CheckCorrect(&r); err != nil {
		return messages.CorrectReply{}, err
	}
	result, err := b.propose(ctx, &ledger.Command{Verb: ledger.Correct, By: caller, Correct: r})
	return result.Corrected, err
}
