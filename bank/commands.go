package bank

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

// serviceVersion is that of the requests and replies, not of the program.
const serviceVersion = "1.0.0"

// commandConcurrency is how many commands may wait for the log at once; they
// share its entries, so many make it no slower.
const commandConcurrency = 1024

// commands are what the leader alone may answer.
type commands struct {
	config  *Config
	metrics *metrics
	callers *callers
	group   *group
	keys    *keys
}

// service is the service of commands.
func (cs *commands) service() bus.Service {
	return bus.Service{
		Name: "candor-bank-commands", Version: serviceVersion, Description: "Changes to the accounts of site " + cs.config.Site,
		Concurrency: commandConcurrency,
		Endpoints: []bus.Endpoint{
			endpoint(cs.config, cs.metrics, messages.VerbTransfer, cs.transfer),
			endpoint(cs.config, cs.metrics, messages.VerbGrant, cs.grant),
			endpoint(cs.config, cs.metrics, messages.VerbMember, cs.member),
			endpoint(cs.config, cs.metrics, messages.VerbProject, cs.project),
			endpoint(cs.config, cs.metrics, messages.VerbPay, cs.pay),
			endpoint(cs.config, cs.metrics, messages.VerbFreeze, cs.freeze),
			endpoint(cs.config, cs.metrics, messages.VerbCredit, cs.credit),
			endpoint(cs.config, cs.metrics, messages.VerbWithdraw, cs.withdraw),
			endpoint(cs.config, cs.metrics, messages.VerbCorrect, cs.correct),
			endpoint(cs.config, cs.metrics, messages.VerbReplica, cs.regroup),
			endpoint(cs.config, cs.metrics, messages.VerbSession, cs.session),
			endpoint(cs.config, cs.metrics, messages.VerbProve, cs.begin),
		},
	}
}

// endpoint makes one of a function on typed requests, and times it.
func endpoint[Req, Rep any](c *Config, m *metrics, verb string, f func(context.Context, messages.Name, Req) (Rep, error)) bus.Endpoint {
	seconds := m.requests.WithLabelValues(verb)
	handle := bus.Handle(verb, func(ctx context.Context, caller messages.Name, request Req) (Rep, error) {
		began := time.Now()
		reply, err := f(ctx, caller, request)
		seconds.Observe(time.Since(began).Seconds())
		m.refuseRequest(verb, err)
		return reply, err
	})
	return bus.Endpoint{Name: verb, Subject: messages.Subject(c.Site, messages.Bank, verb, "*"), Handle: handle}
}

// manage commits a command about one account, unless its caller may not ask for it
// or what it asks for was found to be wrong.
func (cs *commands) manage(ctx context.Context, caller messages.Name, denied error, wrong *messages.Error, c ledger.Command) (messages.AccountReply, error) {
	if denied != nil {
		return messages.AccountReply{}, denied
	}
	if wrong != nil {
		return messages.AccountReply{}, wrong
	}
	c.By, c.Rank = caller, cs.callers.rank(caller)
	result, err := cs.group.propose(ctx, &c)
	return result.Account, err
}

// grant issues credits.
func (cs *commands) grant(ctx context.Context, caller messages.Name, r messages.GrantRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.operator(caller, "grant credits"), ledger.CheckGrant(&r), ledger.Command{Verb: ledger.Grant, Grant: r})
}

// member changes who has which part in a project.
func (cs *commands) member(ctx context.Context, caller messages.Name, r messages.MemberRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.owner(caller, "change members"), ledger.CheckMember(&r), ledger.Command{Verb: ledger.Member, Member: r})
}

// pay moves credits on the word of who owns them.
func (cs *commands) pay(ctx context.Context, caller messages.Name, r messages.PayRequest) (messages.AccountReply, error) {
	r.From = own(caller, r.From)
	return cs.manage(ctx, caller, cs.callers.owner(caller, "pay"), ledger.CheckPay(&r), ledger.Command{Verb: ledger.Pay, Pay: r})
}

// freeze freezes an account or thaws it.
func (cs *commands) freeze(ctx context.Context, caller messages.Name, r messages.FreezeRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.owner(caller, "freeze accounts"), ledger.CheckFreeze(&r), ledger.Command{Verb: ledger.Freeze, Freeze: r})
}

// project makes a project.
func (cs *commands) project(ctx context.Context, caller messages.Name, r messages.ProjectRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.operator(caller, "make projects"), ledger.CheckProject(&r), ledger.Command{Verb: ledger.Project, Project: r})
}

// credit says how far below zero an account may go.
func (cs *commands) credit(ctx context.Context, caller messages.Name, r messages.CreditRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.operator(caller, "give credit"), ledger.CheckCredit(&r), ledger.Command{Verb: ledger.Credit, Credit: r})
}

// withdraw takes credits back to the issuer.
func (cs *commands) withdraw(ctx context.Context, caller messages.Name, r messages.WithdrawRequest) (messages.AccountReply, error) {
	return cs.manage(ctx, caller, cs.callers.operator(caller, "withdraw credits"), ledger.CheckWithdraw(&r), ledger.Command{Verb: ledger.Withdraw, Withdraw: r})
}

// correct takes an earlier transfer back by a new one.
func (cs *commands) correct(ctx context.Context, caller messages.Name, r messages.CorrectRequest) (messages.CorrectReply, error) {
	if err := cs.callers.operator(caller, "correct transfers"); err != nil {
		return messages.CorrectReply{}, err
	}
	if err := ledger.CheckCorrect(&r); err != nil {
		return messages.CorrectReply{}, err
	}
	result, err := cs.group.propose(ctx, &ledger.Command{Verb: ledger.Correct, By: caller, Correct: r})
	return result.Corrected, err
}

// session opens a session for a service or an operator.
func (cs *commands) session(ctx context.Context, caller messages.Name, _ messages.SessionRequest) (messages.SessionReply, error) {
	rank := cs.callers.rank(caller)
	if rank == ledger.User {
		return messages.SessionReply{}, messages.Errorf(messages.PermissionDenied, "account %q needs no session: only services of the site and operators transfer", caller)
	}
	if cs.group.provenFrom() == 0 {
		return messages.SessionReply{}, messages.Errorf(messages.Invalid, "the bank of this site takes no proofs yet: ask without")
	}
	result, err := cs.group.propose(ctx, &ledger.Command{Verb: ledger.Session, By: caller, Rank: rank})
	return result.Session, err
}

// begin has every later command need a proof.
func (cs *commands) begin(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.TrustReply, error) {
	if err := cs.callers.operator(caller, "have requests proven"); err != nil {
		return messages.TrustReply{}, err
	}
	if cs.config.Keys == nil {
		return messages.TrustReply{}, messages.Errorf(messages.NotFound, "the bank runs without the site's keys: give each of its replicas the keys directory")
	}
	if err := cs.keys.declare(ctx, true); err != nil {
		return messages.TrustReply{}, err
	}
	return cs.keys.trusted()
}

// regroup adds a replica of the bank, or removes one.
func (cs *commands) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (messages.ReplicasReply, error) {
	if err := cs.callers.operator(caller, "change the replicas"); err != nil {
		return messages.ReplicasReply{}, err
	}
	reply, err := mailbox.Regroup(ctx, messages.Bank, cs.group.box, &r)
	cs.config.Log.Info("replicas", zap.String("by", caller), zap.String("add", r.Add), zap.String("remove", r.Remove), zap.Error(err))
	return reply, err
}
