package witness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func (w *Witness) subject(actor, verb string, account messages.Name) string {
	return messages.Subject(w.Site, actor, verb, account)
}

// key returns a new key for a client's request, different from all others.
func (w *Witness) key(client int, rng *rand.Rand) string {
	return fmt.Sprintf("%d-%d-%016x", w.round, client, rng.Uint64())
}

func (w *Witness) account(ctx context.Context, name messages.Name) (money.AccountReply, error) {
	return ask[money.AccountReply](ctx, w.buses[name], w.Patience, w.subject(messages.Bank, messages.VerbAccount, name), money.AccountRequest{})
}

// moveMoney makes one request of the i-th account of a group: it pays another account or reads its balance. In
// one of ten cases, the operator grants credits to another account, and the i-th account does nothing.
func (w *Witness) moveMoney(ctx context.Context, client, g, i int, old *stale, rng *rand.Rand) {
	group := w.Groups[g]
	in := moneyAsk{kind: "pay", from: i, to: (i + 1 + rng.IntN(groupSize-1)) % groupSize, amount: 1 + messages.Credits(rng.Int64N(int64(2*messages.Credit)))}
	p := payment{key: w.key(client, rng), from: group[in.from], to: group[in.to], amount: in.amount}
	call := w.now()
	var told moneyTold
	var err error
	switch n := rng.IntN(10); {
	case n < 3:
		in.kind, in.from, in.to, in.amount = "balance", 0, i, 0
		var account money.AccountReply
		account, err = w.account(ctx, group[i])
		told.balance = account.Balance
		if told.outcome = judge(err); err == nil {
			told.outcome, told.balance = read, w.plantStale(old, told.balance)
		}
	case n == 3:
		in.kind, in.from, p.from = "grant", 0, ""
		_, err = ask[money.AccountReply](ctx, w.buses[w.Operator], w.Patience, w.subject(messages.Bank, messages.VerbGrant, w.Operator),
			money.GrantRequest{Key: p.key, Account: p.to, Amount: p.amount, Reason: p.key})
		told.outcome = judge(err)
	default:
		_, err = w.pay(ctx, p, p.key)
		told.outcome = judge(err, messages.Insufficient)
	}
	w.note(client, groupName(g), call, in, told, told.outcome)
	w.givenUp(in.kind, err, told.outcome)
	if told.outcome == acknowledged {
		old.paid = old.paid || p.from != ""
		w.paid(ctx, p)
	}
}

// stale has the balance that a client read last. It also says whether the client has paid since then.
type stale struct {
	balance messages.Credits
	paid    bool
}

// plantStale returns the balance that a client must record. Once, for the fault PlantStale, it is the balance before
// the client's last payment.
func (w *Witness) plantStale(old *stale, balance messages.Credits) messages.Credits {
	before := *old
	*old = stale{balance: balance}
	if before.balance != balance && before.paid && w.plants(PlantStale) {
		return before.balance
	}
	return balance
}

// plants reports whether a given fault must be inserted now. It returns true at most once.
func (w *Witness) plants(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Plant != what {
		return false
	}
	w.Plant = ""
	return true
}

// givenUp is called when a client stops repeating a request. If the outcome of the request is still unknown, givenUp
// reports this as a violation.
func (w *Witness) givenUp(kind string, err error, o outcome) {
	if o == unknown {
		w.breaks("%s was given up: %v", kind, err)
	}
}

func (w *Witness) paid(ctx context.Context, p payment) {
	noted := []payment{p}
	if w.plants(PlantLost) {
		noted = append(noted, payment{key: "planted", to: p.to, amount: p.amount})
	}
	if p.from != "" && w.plants(PlantDoubled) {
		_, _ = w.pay(ctx, p, p.key+"-planted") // the error is ignored: if this second payment is refused, the witness finds no fault, and the test that plants the fault fails
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.payments = append(w.payments, noted...)
}

func (w *Witness) pay(ctx context.Context, p payment, key string) (money.AccountReply, error) {
	return ask[money.AccountReply](ctx, w.buses[p.from], w.Patience, w.subject(messages.Bank, money.VerbPay, p.from),
		money.PayRequest{Key: key, To: p.to, Amount: p.amount, Reason: p.key})
}

// leastPurse is the least balance of a worker at the beginning of a round.
const leastPurse = 50 * messages.Credit

// fund grants credits to workers that have spent nearly all their credits on jobs.
func (w *Witness) fund(ctx context.Context) error {
	for i, name := range w.Workers {
		if w.due[name] >= leastPurse {
			continue
		}
		p := payment{key: fmt.Sprintf("%d-fund-%d", w.round, i), to: name, amount: leastPurse}
		if _, err := ask[money.AccountReply](ctx, w.buses[w.Operator], w.Patience, w.subject(messages.Bank, messages.VerbGrant, w.Operator),
			money.GrantRequest{Key: p.key, Account: p.to, Amount: p.amount, Reason: p.key}); err != nil {
			return err
		}
		w.payments = append(w.payments, p)
	}
	return nil
}

// keptKeys is how many of its latest jobs a worker remembers, so that it can ask about them.
const keptKeys = 8

// work makes one request of a worker. It submits a new job, or makes a request about an earlier job: it asks for the
// job's state, submits the job again, or cancels it. The list `mine` has the keys of the worker's latest jobs. The
// function returns this list, with the key of a new job added.
func (w *Witness) work(ctx context.Context, client int, worker messages.Name, mine []string, rng *rand.Rand) []string {
	if len(mine) < keptKeys/2 || rng.IntN(2) == 0 {
		key := w.key(client, rng)
		if w.submit(ctx, client, worker, key) {
			mine = append(mine, key)
		}
		return mine[max(0, len(mine)-keptKeys):]
	}
	key := mine[rng.IntN(len(mine))]
	w.mu.Lock()
	job := w.jobs[key]
	w.mu.Unlock()
	switch n := rng.IntN(5); {
	case n == 0:
		w.cancel(ctx, client, worker, key, job)
	case n == 1:
		w.submit(ctx, client, worker, key)
	default:
		w.show(ctx, client, worker, key, job)
	}
	return mine
}

// submit submits the job with a key, and reports whether it was acknowledged.
func (w *Witness) submit(ctx context.Context, client int, worker messages.Name, key string) bool {
	call := w.now()
	reply, err := ask[jobmsg.SubmitReply](ctx, w.buses[worker], w.Patience, w.subject(messages.Auctioneer, messages.VerbSubmit, worker), w.job(key))
	o := judge(err)
	w.note(client, "job "+key, call, jobAsk{key, "submit"}, jobTold{outcome: o, job: reply.Job}, o)
	w.givenUp("a submission", err, o)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.jobs[key]; err == nil && !known {
		w.jobs[key] = reply.Job
		w.counts.Jobs++
	}
	return err == nil
}

func (w *Witness) cancel(ctx context.Context, client int, worker messages.Name, key string, job messages.JobID) {
	call := w.now()
	_, err := ask[jobmsg.CancelReply](ctx, w.buses[worker], w.Patience, w.subject(messages.Auctioneer, messages.VerbCancel, worker), jobmsg.CancelRequest{Job: job})
	o := judge(err, messages.Ended)
	w.note(client, "job "+key, call, jobAsk{key, "cancel"}, jobTold{outcome: o}, o)
	w.givenUp("a cancellation", err, o)
}

func (w *Witness) show(ctx context.Context, client int, worker messages.Name, key string, job messages.JobID) {
	call := w.now()
	reply, err := ask[jobmsg.JobDetail](ctx, w.buses[worker], w.Patience, w.subject(messages.Auctioneer, messages.VerbJob, worker), jobmsg.JobRequest{Job: job})
	told := jobTold{outcome: judge(err, messages.NotFound), job: job, state: reply.State}
	told.missing = told.outcome == refused
	o := told.outcome
	if o == acknowledged || o == refused {
		o = read
	}
	w.note(client, "job "+key, call, jobAsk{key, "show"}, told, o)
	w.givenUp("a question for a job", err, o)
}

// applyMarkets reads the markets. In one of ten cases, it then sends a request that applies the markets again, with a
// new time limit for the last market. Half of these requests contain the version that was read. A request with a
// version changes nothing if another client has changed the markets since then.
func (w *Witness) applyMarkets(ctx context.Context, client int, rng *rand.Rand) {
	seen, err := w.readMarket(ctx, client) // readMarket puts the answer into the record
	if err != nil || rng.IntN(10) > 0 {
		return
	}
	in := marketAsk{apply: messages.Duration(time.Hour + time.Duration(rng.Int64N(1_000_000))*time.Second)}
	if rng.IntN(2) == 0 {
		in.version = seen.version
	}
	call, last := w.now(), len(w.Markets)-1
	all := append([]market.Market(nil), w.Markets...)
	all[last].TimeLimit = in.apply
	reply, err := ask[market.ApplyReply](ctx, w.buses[w.Operator], w.Patience, w.subject(messages.Auctioneer, market.VerbApply, w.Operator),
		market.ApplyRequest{Markets: all, Key: w.key(client, rng), Version: in.version})
	o := judge(err, messages.Conflict)
	w.note(client, marketsName, call, in, marketTold{o, markets{version: reply.Version}}, o)
	w.givenUp("a change of markets", err, o)
}

const marketsName = "the markets"

func (w *Witness) readMarket(ctx context.Context, client int) (markets, error) {
	call := w.now()
	found, err := w.look(ctx)
	told := marketTold{unknown, found}
	if err == nil {
		told.outcome = read
	}
	w.note(client, marketsName, call, marketAsk{}, told, told.outcome)
	w.givenUp("a question for the markets", err, told.outcome)
	return found, err
}

// look asks the site for its markets. It returns the time limit of the last market of the trial, and the version of the
// markets.
func (w *Witness) look(ctx context.Context) (found markets, err error) {
	reply, err := ask[market.MarketsReply](ctx, w.buses[w.Operator], w.Patience, w.subject(messages.Auctioneer, messages.VerbMarkets, w.Operator), messages.Empty{})
	found.version = reply.Version
	for _, m := range reply.Markets {
		if m.Market.Name == w.Markets[len(w.Markets)-1].Name {
			found.limit = m.Market.TimeLimit
		}
	}
	return found, err
}

// traces returns the file in which the round's tasks record that they ran.
func (w *Witness) traces() string { return filepath.Join(w.Dir, fmt.Sprintf("ran-%d", w.round)) }

// prepareTraces makes the file in which each task leaves a line when it runs. The users of all tasks can write to it.
func (w *Witness) prepareTraces() error {
	_ = os.Remove(filepath.Join(w.Dir, fmt.Sprintf("ran-%d", w.round-1)))
	f, err := os.Create(w.traces())
	if err != nil {
		return err
	}
	return closing(f, os.Chmod(w.traces(), 0o666))
}

// job returns the submission of the job with a key. Every fourth job takes some time, so that it can be cancelled.
func (w *Witness) job(key string) jobmsg.SubmitRequest {
	script := "echo $KEY >> " + filepath.Base(w.traces())
	if key[len(key)-1]%4 == 0 {
		script += "; sleep 0.3"
	}
	return jobmsg.SubmitRequest{Key: key, Spec: jobmsg.JobSpec{Name: key, Budget: messages.Credit, Dir: w.Dir,
		Stages: []jobmsg.Stage{{Name: "main", Attempts: 3, Command: []string{"/bin/sh", "-c", script}, Env: jobmsg.Env{{Name: "KEY", Value: key}}}}}}
}
