package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// These are the limits that the victim sets for the lying site as a peer, and the amount that a user of the victim
// authorises for this site.
const (
	liarLimit  = 100 * messages.Credit
	liarShare  = 40 * messages.Credit
	liarBudget = 5 * messages.Credit
	leastVisit = messages.Credit / 100 // smallest authorisation of a visiting job
)

// These are accounts at the site that the liar attacks. The honest users submit jobs. The trusting user sends a job to
// the liar's site. The liar pays credits to its accomplice.
var (
	honest                             = users[:2]
	trusting, accomplice messages.Name = "dave", "erin"
)

// chargedWithin is the longest time until the site's own jobs are charged, even if its peer does not answer or breaks
// the protocol.
const chargedWithin = 30 * time.Second

// liarPlan returns a site of a federation. The last of three sites has no hosts and only sends lies.
func liarPlan(name messages.Name) netlab.Plan {
	p := plan(name, true)
	p.Agents, p.Queue = 2, name == siteNames[0]
	if name == siteNames[2] {
		p.Racks = 0
	}
	return p
}

type liar struct {
	*netlab.Impostor
	*trial
	victim *member
	said   []clearingmsg.SignedInstructions
	in     clearingmsg.RunningTotal // sum of the liar's instructions at the victim

	mu      sync.Mutex
	trusted *clearingmsg.PeerSubmitRequest // job that a user of the victim sent to the liar
	answers bool                           // whether the liar answers the victim's instructions
	out     clearingmsg.RunningTotal       // sum of the victim's instructions
}

// The function `lies` lets a peer attack a site with the peer's own credentials. The peer may gain at most its limit,
// its share, and the amounts that users authorised. The site must still serve its own users and an honest peer. At the
// end, the site ends its trade with the attacking peer (candor peer part).
func lies(ctx context.Context, t *trial, all []*member) error {
	l, err := newLiar(ctx, t, all[0])
	if err != nil {
		return err
	}
	defer l.Close()
	for i, m := range all {
		if err := m.begin(ctx, load.Config{Users: honest, Job: roamingTo([]messages.Name{all[1-i].Name}), Every: cutEvery, Prefix: "liar"}); err != nil {
			return err
		}
	}
	err = l.attack(ctx, all)
	for _, m := range all {
		m.result = m.load.Stop()
	}
	if err != nil {
		return err
	}
	return l.after(ctx, all)
}

func newLiar(ctx context.Context, t *trial, victim *member) (*liar, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	i, err := t.Lab.Sites[2].Impersonate(ctx, victim.Name)
	if err != nil {
		return nil, err
	}
	l := &liar{Impostor: i, trial: t, victim: victim, answers: true,
		in: clearing.Beginning(i.Name, i.To), out: clearing.Beginning(i.To, i.Name)}
	return l, errors.Join(l.terms(ctx, false), l.listen())
}

// terms makes the victim's operator set the liar's key, limit and share. If `retire` is true, the liar's earlier keys
// are retired.
func (l *liar) terms(ctx context.Context, retire bool) error {
	key, err := l.Key.(interface{ PublicKey() (string, error) }).PublicKey()
	if err != nil {
		return err
	}
	share := liarShare
	_, err = ask[clearingmsg.PeerReply](ctx, l.victim, messages.Bank, clearingmsg.VerbPeer,
		clearingmsg.PeerRequest{Peer: l.Name, Keys: []string{key}, Limit: liarLimit, Share: &share, Retire: retire})
	return err
}

func (l *liar) attack(ctx context.Context, all []*member) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"says of a user's job what no terminal can show", l.speaksIll},
		{"says that the job is complete, and does not charge it", l.holdsOn},
		{"sends trivial jobs, and is silent about their charges", l.floods},
		{"charges what it may not", l.overcharges},
		{"bids in a batch queue under invented names", l.queues},
		{"floods its peer with quotes", l.floodsQuotes},
		{"settles cycles that its peer has not closed", l.settlesAlone},
		{"is silent while an honest site settles", func(ctx context.Context) error { return l.othersSettle(ctx, all) }},
		{"says again what it said", l.repeats},
		{"forges numbers", l.forges},
		{"signs with a retired key", l.signsOld},
		{"parts, and goes on", l.leaves},
	} {
		l.log("%s %s", l.Name, step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", l.Name, step.name, err)
		}
		if err := l.bound(ctx, step.name); err != nil {
			return err
		}
	}
	return nil
}

// speaksIll makes the liar answer a user of the victim with texts and numbers that no terminal can show. The user's
// commands must not print them.
func (l *liar) speaksIll(ctx context.Context) error {
	script := filepath.Join(l.Lab.Dir, "job.sh")
	if err := os.WriteFile(script, []byte("true\n"), 0o600); err != nil {
		return err
	}
	job := []string{"--budget", liarBudget.String(), script}
	if err := l.prints(ctx, trusting, slices.Concat([]string{"submit", "--site", l.Name}, job)...); err != nil {
		return err
	}
	number := ""
	if err := within(ctx, patience, func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.trusted == nil {
			return fmt.Errorf("no job of %s has arrived", trusting)
		}
		number = l.trusted.Job.String()
		return nil
	}); err != nil {
		return err
	}
	for _, command := range [][]string{{"job", number}, {"job", number, "--json"}, {"jobs"}, {"jobs", "--json"}, {"why", number}, {"why", number, "--json"},
		append([]string{"quote", "--sites", "all"}, job...), append([]string{"quote", "--sites", "all", "--json"}, job...), append([]string{"submit", "--site", "auto", "--dry-run"}, job...)} {
		if err := l.prints(ctx, trusting, command...); err != nil {
			return err
		}
	}
	return nil
}

// Some credits of a user are held for a charge by the liar. holdsOn checks that they become free soon, whether or not
// the liar makes the charge.
func (l *liar) holdsOn(ctx context.Context) error {
	return within(ctx, patience, func(ctx context.Context) error {
		a, err := ask[money.AccountReply](ctx, l.victim, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: trusting, Holds: true})
		if err != nil {
			return err
		}
		if len(a.Pending) == 0 || a.Pending[0].Expires > messages.TimeOf(time.Now()).Add(clearingmsg.ChargeWithin) {
			return fmt.Errorf("the job of %s is complete, but its holds are not as expected: %+v", trusting, a.Pending)
		}
		return nil
	})
}

// The method prints checks that a user's command prints only text that any terminal can show.
func (l *liar) prints(ctx context.Context, as messages.Name, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := l.victim.Candor(ctx, as, command...)
	if err != nil {
		return err
	}
	printed := string(text)
	if at := strings.IndexFunc(printed, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
		l.breaks("candor %s prints characters that a terminal may not be able to show: %q", strings.Join(command, " "), printed[at:min(len(printed), at+40)])
	}
	if strings.Contains(printed, "NaN") || strings.Contains(printed, "1970") {
		l.breaks("candor %s prints an impossible number or time: %s", strings.Join(command, " "), printed)
	}
	return nil
}

// floods sends very small visiting jobs in the names of many visitors. It answers none of the charges for these jobs.
// The victim must still charge its own jobs in time.
func (l *liar) floods(ctx context.Context) error {
	l.mu.Lock()
	l.answers = false
	l.mu.Unlock()
	if err := l.visit(ctx, 0, leastVisit*6/10); messages.KindOf(err) != messages.Insufficient {
		l.breaks("a visiting job that may cost less than %v is not refused for this reason: %v", leastVisit, err)
	}
	jobs, taken := either(l.trial, 1000, 200), 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	const atOnce = 32
	for part := range atOnce {
		wg.Go(func() {
			for n := part; n < jobs && ctx.Err() == nil; n += atOnce {
				if l.visit(ctx, n, leastVisit) == nil {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	began := time.Now()
	wg.Wait()
	l.count("trivial jobs of the liar", jobs)
	l.count("of these taken", taken)
	if taken < jobs/2 {
		l.breaks("only %d of %d trivial jobs were accepted: so the flood shows nothing", taken, jobs)
	}
	l.time("until all had an answer", time.Since(began))
	return l.charged(ctx)
}

// visit sends the trivial visiting job with the number n, and an authorisation of the given amount.
func (l *liar) visit(ctx context.Context, n int, amount messages.Credits) error {
	spec := quick(n).Spec
	return l.visitWith(ctx, n, amount, &spec)
}

func (l *liar) visitWith(ctx context.Context, n int, amount messages.Credits, spec *job.JobSpec) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	job, account := messages.JobID(1_000_000+n), fmt.Sprintf("v%d", n)
	a, err := clearing.SignAuthorisation(l.Key, clearingmsg.Authorisation{Issuer: l.Name, Peer: l.To, ID: clearingmsg.RemoteJobAuthorisation(job), Account: account, Member: account,
		Amount: amount, Issued: messages.TimeOf(time.Now()), Interval: messages.Duration(time.Hour), Margin: messages.Duration(24 * time.Hour)})
	if err != nil {
		return err
	}
	spec.Budget = amount
	_, err = bus.Call[clearingmsg.PeerSubmitReply](ctx, l.Bus, l.Subject(messages.Auctioneer, clearingmsg.VerbPeerSubmit),
		clearingmsg.PeerSubmitRequest{Job: job, Account: account, Spec: *spec, Authorisation: a})
	return err
}

// charged submits new jobs of a user of the attacked site, and checks that they complete and are charged in time.
func (l *liar) charged(ctx context.Context) error {
	client, err := l.victim.Connect(users[2])
	if err != nil {
		return err
	}
	defer client.Close()
	subject := func(verb string) string { return messages.Subject(l.victim.Name, messages.Auctioneer, verb, users[2]) }
	var took []time.Duration
	for n := range 5 {
		r := quick(n)
		r.Key = fmt.Sprintf("charged/%d", n)
		began := time.Now()
		reply, err := bus.Call[job.SubmitReply](ctx, client, subject(messages.VerbSubmit), r)
		if err != nil {
			return err
		}
		err = within(ctx, patience, func(ctx context.Context) error {
			j, err := bus.Call[job.JobDetail](ctx, client, subject(messages.VerbJob), job.JobRequest{Job: reply.Job})
			if err == nil && !j.State.Final() {
				err = fmt.Errorf("job %d is %v", reply.Job, j.State)
			}
			return err
		})
		took = append(took, time.Since(began))
		if err != nil || took[n] > chargedWithin {
			l.breaks("a job of %s was not charged in %v while %s is silent: %v", l.victim.Name, chargedWithin, l.Name, err)
			break
		}
	}
	l.times("until an own job of the victim is charged, the liar being silent", took)
	return nil
}

// had returns the amount that the liar's accomplice has received so far.
func (l *liar) had(ctx context.Context) (messages.Credits, error) {
	a, err := ask[money.AccountReply](ctx, l.victim, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: accomplice})
	return a.Balance - startingGrant, err
}

func (l *liar) standing(ctx context.Context) (clearingmsg.PeerReply, error) {
	all, err := ask[clearingmsg.PeersReply](ctx, l.victim, messages.Bank, clearingmsg.VerbPeers, messages.Empty{})
	for _, p := range all.Peers {
		if p.Peer == l.Name {
			return p, err
		}
	}
	if err == nil {
		err = messages.Errorf(messages.NotFound, "%s is no peer of %s", l.Name, l.victim.Name)
	}
	return clearingmsg.PeerReply{}, err
}

// bound checks how much the liar has cost the victim so far, by the victim's own books. It must not be more than the
// liar's terms as a peer allow.
func (l *liar) bound(ctx context.Context, step string) error {
	had, err := l.had(ctx)
	if err != nil {
		return err
	}
	user, err := ask[money.AccountReply](ctx, l.victim, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: trusting})
	if err != nil {
		return err
	}
	if had > liarLimit+liarShare+liarBudget || user.Spent > liarBudget {
		l.breaks("%s %s: it now has %v, but its limit is %v, its share %v, and %v is what %s authorised; %s paid %v", l.Name, step, had, liarLimit, liarShare, liarBudget, trusting, trusting, user.Spent)
	}
	return nil
}

// after makes the victim end its relation with the liar, and write the loss off in its books. The victim set two bounds
// for the liar: the limit of its debt, and its share of the reserve for settled debts. The loss must be at most their
// sum. All other records must agree.
func (l *liar) after(ctx context.Context, all []*member) error {
	p, err := l.standing(ctx)
	if err != nil {
		return err
	}
	loss := max(0, -p.Owed) + p.Settled
	l.add("limit of the liar", liarLimit.Float(), "credits")
	l.add("share of the liar", liarShare.Float(), "credits")
	l.add("what the liar cost the site", loss.Float(), "credits")
	if loss > liarLimit+liarShare {
		l.breaks("%s costs %v, which is more than its limit of %v and its share of %v together", l.Name, loss, liarLimit, liarShare)
	}
	if loss < liarLimit {
		l.breaks("%s had only %v: the attacks do not reach its limit of %v, and show nothing", l.Name, loss, liarLimit)
	}
	if _, err := l.victim.Candor(ctx, netlab.Operator, "peer", "part", l.Name, "--loss", loss.String(), "--from", accomplice, "--reason", "it lies"); err != nil {
		return err
	}
	if err := all[1].parted(ctx, l.Name); err != nil {
		return err
	}
	if err := everyone(all, func(m *member) error { return m.settle(ctx) }); err != nil {
		return err
	}
	return l.agreed(ctx, all)
}

// parted makes the operator of a site end the relation to a peer. The peer never answered, so nothing is owed, and the
// loss is 0.
func (m *member) parted(ctx context.Context, peer messages.Name) error {
	_, err := m.Candor(ctx, netlab.Operator, "peer", "part", peer, "--loss", "0", "--reason", "it never answers")
	return err
}

// The liar attacked one site, the victim. After this, agreed compares the books of the victim and the honest peer. It
// then settles the debts between these two sites, and verifies the books of all sites again.
func (l *liar) agreed(ctx context.Context, all []*member) error {
	if err := l.agree(ctx, all); err != nil {
		return err
	}
	for _, m := range all {
		m.givenUp()
	}
	if err := l.settleCycle(ctx, all); err != nil {
		return err
	}
	return everyone(all, func(m *member) error { return m.verify(ctx) })
}
