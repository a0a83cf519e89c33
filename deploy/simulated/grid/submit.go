package grid

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const (
	class = "cpu"
	stage = "main"
	peer  = "peer"
)

// part is one job of the book. It is a whole job of the workload, or one of its tasks. The tasks become separate jobs
// of the book if the market allows only jobs of one task, or if it would start all tasks of a job together.
type part struct{ job, index int }

func account(user int) messages.Name { return "u" + strconv.Itoa(user) }

func (p part) key() string { return "j" + strconv.Itoa(p.job) + "." + strconv.Itoa(p.index) }

func (g *Grid) partsOf(i int) int { return partsOf(g.Problem, i) }

func partsOf(p *core.Problem, i int) int {
	if p.Work.Parallel == workload.Wide {
		return 1
	}
	split := p.Work.Parallel == workload.Split && Gangs(p.Market.Mechanism)
	if split || p.Market.Mechanism == rules.Deadline || p.Market.Price == market.PricePivot {
		return p.Work.Jobs[i].Width
	}
	return 1
}

// submit sends a user's job, under the chosen contract if the market sells contracts.
func (g *Grid) submit(i int) {
	if g.Progress != nil {
		g.Progress(i, len(g.out.Jobs))
	}
	g.parts[i] = int32(g.partsOf(i))
	if g.needless(i) {
		for range g.partsOf(i) {
			g.leader.refuse(i, "its owner has the result")
		}
		return
	}
	if g.Market.Mechanism == rules.Contract {
		g.askQuote(i)
		return
	}
	for k := range g.partsOf(i) {
		g.sendJob(part{i, k}, "")
	}
}

// sendJob submits a part of a job under a contract. The contract is "" in a market without contracts.
func (g *Grid) sendJob(p part, contract string) {
	g.traffic.Submissions++
	received := false
	g.call(userActor, auctioneerActor, func() any {
		if !received {
			received = true
			g.leader.submit(p, contract)
		}
		return nil
	}, func(any) {})
}

func (g *Grid) slots(i int) int {
	slots := g.Work.Jobs[i].Width / g.partsOf(i)
	if g.config.Shapes != nil {
		width, _ := g.config.Unit.Width(g.config.Shapes[i])
		slots *= width
	}
	return slots
}

func (g *Grid) width(i int) int {
	if g.Work.Parallel == workload.Wide {
		return 1
	}
	width := g.Work.Jobs[i].Width / g.partsOf(i)
	if o := g.owners[i]; o != nil && o.Wide > 1 {
		return (width + o.Wide - 1) / o.Wide
	}
	return width
}

func (l *leader) spec(i int) (*job.JobSpec, error) {
	j, b, width := &l.Work.Jobs[i], &l.Bids[i], l.width(i)
	manner := registry.Of(&l.market.Config)
	length := b.Length
	if l.Market.Algorithm == "WSPT" {
		length = max(j.Runtime, 1e-6)
	}
	s := &job.JobSpec{
		Market: l.market.Config.Name, Length: messages.Duration(length * 1e9),
		Utility: &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: class, Weight: 1}}, Minimum: l.Market.SLO},
		Stages:  []job.Stage{{Name: stage, Class: class, Tasks: width, Command: []string{"run"}, Gang: manner.Gangs && l.Work.Parallel == workload.Gang && width > 1}},
	}
	if shapes := l.Grid.config.Shapes; shapes != nil {
		s.Stages[0].CPUs, s.Stages[0].Memory = shapes[i].CPUs, shapes[i].Memory
	}
	if l.Work.Parallel == workload.Wide {
		s.Stages[0].CPUs = j.Width
	}
	if manner.Spans {
		s.Stages[0].TimeLimit = s.Length
	}
	if limits := l.Grid.config.Limits; limits != nil {
		s.Stages[0].TimeLimit = messages.Duration(limits[i] * 1e9)
	}
	slots := float64(l.slots(i))
	for _, f := range []struct {
		name string
		to   *messages.Credits
		x    float64
	}{{"budget", &s.Budget, budgetOf(l.Problem, i)}, {"rate", &s.Rate, b.Rate}, {"value", &s.Value, b.Rate * b.Length * slots}, {"delay", &s.Delay, b.SaidDelay() * slots}} {
		var ok bool
		if !manner.Reads(f.name) { // a site refuses a bid with a field that its market ignores
			continue
		}
		if *f.to, ok = messages.RoundCredits(f.x); !ok {
			return nil, messages.Errorf(messages.Invalid, "an amount of %v credits is above the limit", f.x)
		}
	}
	if !math.IsInf(b.Deadline, 1) {
		s.Deadline = l.at(b.Deadline)
	}
	if l.Market.Mechanism == rules.Contract {
		v := core.Declared(l.Market.Worth, j, b)
		s.Valuation = &v
	}
	if o := l.owners[i]; o != nil {
		return s, l.describe(o, s)
	}
	return s, nil
}

// submit does a site's work for a submission: it admits the job, holds the budget at the bank, and commits the job.
func (l *leader) submit(p part, contract string) {
	s, err := l.admit(p, contract)
	if contract != "" && messages.KindOf(err) == messages.Expired { // meanwhile other jobs have bought this time
		l.askQuote(p.job)
		return
	}
	if err != nil {
		l.refuse(p.job, messages.Detail(err))
		return
	}
	l.transfer(s.Hold(0), func(r []money.TransferResult) {
		if err := s.Secured(r); err != nil {
			l.fail("the hold of job %d was refused: %v", l.Work.Jobs[p.job].Number, err)
			return
		}
		l.enter(p, s)
	})
}

func (l *leader) submitter(i int) messages.Name {
	name := account(l.Work.Jobs[i].User)
	if o := l.owners[i]; o != nil && o.Visits {
		return messages.VisitorName(name, peer)
	}
	return name
}

// admit asks the market to accept a job. If `contract` is not "", the job accepts the contract with this ID.
func (l *leader) admit(p part, contract string) (*intake.Submission, error) {
	spec, err := l.spec(p.job)
	if err != nil {
		return nil, err
	}
	spec.Contract = contract
	s, err := l.rules.Prepare(account(l.Work.Jobs[p.job].User), &job.SubmitRequest{Key: p.key(), Spec: *spec})
	if err != nil {
		return nil, err
	}
	s.Account = l.submitter(p.job)
	if _, err = l.rules.Known(l.book, s); err != nil {
		return nil, err
	}
	if err := s.Agree(l.book, l.now); err != nil {
		return nil, err
	}
	return s, s.Admit(l.now, l.market)
}

func (l *leader) enter(p part, s *intake.Submission) {
	receipt, ok := l.propose(s.Command()).(book.Receipt)
	if !ok || int(receipt.Job) != len(l.of) {
		l.fail("job %d cannot be entered: %+v", l.Work.Jobs[p.job].Number, receipt)
		return
	}
	l.of = append(l.of, int32(p.job))
	if o := l.owners[p.job]; o != nil {
		if o.ids = append(o.ids, receipt.Job); len(o.ids) == l.partsOf(p.job) {
			l.moment(o, Submitted)
		}
	}
}
