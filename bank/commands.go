package bank

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// serviceVersion is the version of the requests and replies, not of the program.
const serviceVersion = "1.0.0"

// commandConcurrency is how many commands may wait for the log at the same time. They share log entries, so a high
// number does not slow down the log.
const commandConcurrency = 1024

type commands struct {
	config   *Config
	metrics  *metrics
	callers  *callers
	founding *founding
	group    *group
	keys     *keys
}

func (cs *commands) service() bus.Service {
	return bus.Service{
		Name: "candor-bank-commands", Version: serviceVersion, Description: "Changes to the accounts of site " + cs.config.Site,
		Concurrency: commandConcurrency,
		Endpoints: []bus.Endpoint{
			endpoint(cs.config, cs.metrics, messages.VerbTransfer, cs.transfer),
			managed(cs, messages.VerbGrant, cs.callers.operator, "grant credits", func(r money.GrantRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Grant, Grant: r}
			}),
			managed(cs, messages.VerbMember, cs.callers.owner, "change members", func(r money.MemberRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Member, Member: r}
			}),
			managed(cs, money.VerbProject, cs.callers.operator, "make projects", func(r money.ProjectRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Project, Project: r}
			}),
			managed(cs, money.VerbPay, cs.callers.owner, "pay", func(r money.PayRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Pay, Pay: r}
			}),
			managed(cs, money.VerbFreeze, cs.callers.owner, "freeze accounts", func(r money.FreezeRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Freeze, Freeze: r}
			}),
			managed(cs, money.VerbCredit, cs.callers.operator, "give credit", func(r money.CreditRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Credit, Credit: r}
			}),
			managed(cs, money.VerbWithdraw, cs.callers.operator, "withdraw credits", func(r money.WithdrawRequest) ledger.Command {
				return ledger.Command{Verb: ledger.Withdraw, Withdraw: r}
			}),
			endpoint(cs.config, cs.metrics, money.VerbCorrect, cs.correct),
			endpoint(cs.config, cs.metrics, messages.VerbReplica, cs.regroup),
			endpoint(cs.config, cs.metrics, messages.VerbSession, cs.session),
		},
	}
}

func endpoint[Req, Rep any](c *Config, m *metrics, verb string, f func(context.Context, messages.Name, Req) (Rep, error)) bus.Endpoint {
	seconds := m.serve(verb)
	handle := bus.Handle(verb, func(ctx context.Context, caller messages.Name, request Req) (Rep, error) {
		began := time.Now()
		reply, err := f(ctx, caller, request)
		seconds.Observe(time.Since(began).Seconds())
		m.refuseRequest(verb, err)
		return reply, err
	})
	return bus.Endpoint{Name: verb, Subject: messages.Subject(c.Site, messages.Bank, verb, "*"), Handle: handle}
}

// managed returns the endpoint of a command about one account. The function `may` returns an error if the caller may
// not give the command. The function `command` converts the request to a command of the ledger.
func managed[Req any](cs *commands, verb string, may func(messages.Name, string) error, what string, command func(Req) ledger.Command) bus.Endpoint {
	return endpoint(cs.config, cs.metrics, verb, func(ctx context.Context, caller messages.Name, r Req) (money.AccountReply, error) {
		if err := may(caller, what); err != nil {
			return money.AccountReply{}, err
		}
		c := command(r)
		c.By, c.Rank, c.Pay.From = caller, cs.callers.rank(caller), own(caller, c.Pay.From)
		result, err := cs.group.propose(ctx, &c)
		return result.Account, err
	})
}

func (cs *commands) correct(ctx context.Context, caller messages.Name, r money.CorrectRequest) (money.CorrectReply, error) {
	if err := cs.callers.operator(caller, "correct transfers"); err != nil {
		return money.CorrectReply{}, err
	}
	result, err := cs.group.propose(ctx, &ledger.Command{Verb: ledger.Correct, By: caller, Correct: r})
	return result.Corrected, err
}

func (cs *commands) session(ctx context.Context, caller messages.Name, _ messages.SessionRequest) (messages.SessionReply, error) {
	rank := cs.callers.rank(caller)
	if rank == ledger.User {
		return messages.SessionReply{}, messages.Errorf(messages.PermissionDenied, "account %q needs no session: only services of the site and operators transfer", caller)
	}
	if cs.group.provenFrom() == 0 {
		return messages.SessionReply{}, messages.Errorf(messages.Invalid, "the bank of this site does not accept proofs yet: send the request without a proof")
	}
	result, err := cs.group.propose(ctx, &ledger.Command{Verb: ledger.Session, By: caller, Rank: rank})
	return result.Session, err
}

func (cs *commands) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (messages.ReplicasReply, error) {
	if err := cs.callers.operator(caller, "change the replicas"); err != nil {
		return messages.ReplicasReply{}, err
	}
	reply, err := mailbox.Regroup(ctx, messages.Bank, cs.group.box, &r)
	cs.config.Log.Info("replicas", zap.String("by", caller), zap.String("add", r.Add), zap.String("remove", r.Remove), zap.Error(err))
	return reply, err
}
