package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// dialFor connects to the site, and completes the fields of a job that depend on the site.
func dialFor(ctx context.Context, a *cli.App, job *jobfile.Job) (*cli.Session, error) {
	a.Flags.Destination = job.Site
	s, err := a.Dial(false)
	if err != nil {
		return s, err
	}
	if err := suit(ctx, s, job); err != nil {
		s.Bus.Close()
		return nil, err
	}
	return s, nil
}

func asksSite(job *jobfile.Job) bool {
	if slices.ContainsFunc(job.Components(), asksSite) {
		return true
	}
	return job.Names != (jobfile.Names{}) || job.Spreads() || job.Slurm && len(job.Spec.Predecessors()) > 0
}

// suit replaces a job's Slurm names by their meaning at the site, and divides its ranks among nodes.
func suit(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	if job.Names != (jobfile.Names{}) {
		if err := cmp.Or(translate(ctx, s, job), alone(ctx, s, job)); err != nil {
			return err
		}
	}
	if job.Slurm {
		if err := Await(ctx, s, job); err != nil {
			return err
		}
	}
	if err := spreadRanks(ctx, s, job); err != nil {
		return err
	}
	return suitComponents(ctx, s, job)
}

// A heterogeneous job has a first component and further components. suitComponents divides the ranks of each further
// component among nodes. All components are in the same market.
func suitComponents(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	if len(job.Components()) == 0 {
		return nil
	}
	reply, err := cli.Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return err
	}
	if err := job.JoinMarkets(&reply); err != nil {
		return err
	}
	for _, c := range job.Components() {
		c.Spec.Market, c.Spec.Budget, c.Spec.Project = job.Spec.Market, job.Spec.Budget, job.Spec.Project
		if err := spreadRanks(ctx, s, c); err != nil {
			return err
		}
		job.Spec.Market = c.Spec.Market
	}
	return nil
}

// A job can wait for arrays, and for elements of an array. The site knows only jobs. Await replaces each such array or
// element by the site's jobs for it.
func Await(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	for _, list := range []*[]messages.JobID{&job.Spec.AfterJobs, &job.Spec.AfterOK, &job.Spec.AfterFailed, &job.Spec.AfterStart} {
		if err := awaitArrays(ctx, s, job, list); err != nil {
			return err
		}
	}
	return awaitElements(ctx, s, job)
}

// awaitArrays makes a job wait for whole arrays of jobs. It replaces the number of an element in the list by the number
// of the array. If each element of the array is a job on several nodes, it replaces the number by the numbers of all
// elements.
func awaitArrays(ctx context.Context, s *cli.Session, job *jobfile.Job, list *[]messages.JobID) error {
	var jobs []messages.JobID
	for _, id := range *list {
		array, _, is, err := cli.Element(ctx, s, id)
		if err != nil {
			return err
		}
		if is {
			job.Warnings = append(job.Warnings, fmt.Sprintf("%v is an element of array job %v: the new job waits for the whole array", id, array.Job))
			id = array.Job
		}
		elements, err := Elements(ctx, s, id)
		if err != nil {
			return err
		}
		if !slices.Contains(jobs, id) {
			jobs = append(jobs, id)
		}
		for i := range elements {
			if one := elements[i].Job; !slices.Contains(jobs, one) {
				jobs = append(jobs, one)
			}
		}
	}
	*list = jobs
	return nil
}

// awaitElements prepares a job that waits for another job element by element. The elements of the other job may be jobs
// of their own. Then each element of this job waits for the element with the same index. If only one of the two jobs is
// an array, or none, the job waits for the whole other job.
func awaitElements(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	id := job.Spec.AfterEach
	if id == 0 {
		return nil
	}
	elements, err := Elements(ctx, s, id)
	if err != nil {
		return err
	}
	if len(elements) > 0 {
		job.Spec.AfterEach = 0
		return job.AfterElements(elements)
	}
	array, at, is, err := cli.Element(ctx, s, id)
	switch {
	case err != nil:
		return err
	case is:
		job.Spec.AfterEach = array.Job
	case at == 0 && len(array.Array) == 0 || job.Spec.Stages[0].Array == nil:
		job.Spec.AfterEach, job.Spec.AfterOK = 0, append(job.Spec.AfterOK, id)
	}
	return nil
}

// If the job has --dependency=singleton, alone makes it wait for all present jobs of its account that have the same
// name.
func alone(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	if !job.Names.Singleton {
		return nil
	}
	for r := (jobmsg.JobsRequest{Active: true, Name: job.Spec.Name, Limit: cli.MaxPage}); ; {
		reply, err := cli.Call[jobmsg.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
		if err != nil {
			return err
		}
		for _, j := range reply.Jobs {
			if j.Account == s.Account && j.Name == job.Spec.Name && !slices.Contains(job.Spec.AfterJobs, j.Job) {
				job.Spec.AfterJobs = append(job.Spec.AfterJobs, j.Job)
			}
		}
		if r.After = reply.Next; !reply.More || r.After == "" {
			return nil
		}
	}
}

// translate replaces a job's Slurm names by their meaning at the site. If the job names several partitions, it takes
// the first that has room now. If none has room, it takes the first that accepts the job.
func translate(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	reply, err := cli.Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return err
	}
	markets, err := job.Translate(s.Site, &reply, func() (names []messages.Name, err error) {
		all, err := cli.Call[money.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, money.AccountsRequest{})
		for _, a := range all.Accounts {
			names = append(names, a.Account)
		}
		if messages.KindOf(err) == messages.PermissionDenied { // in a task, only the site can translate
			return []messages.Name{job.Names.Account}, nil
		}
		return names, err
	}, func() ([]market.NodeStatus, error) {
		reply, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
		return reply.Nodes, err
	})
	if err != nil || len(markets) == 0 {
		return err
	}
	chosen := markets[0]
	if len(markets) > 1 {
		if chosen, err = earliest(ctx, s, job, markets, &reply); err != nil {
			return err
		}
	}
	job.Names.Partition, job.Spec.Market = chosen.Partition, chosen.Market
	return nil
}

// earliest returns the first market that accepts the job and has free slots. If no such market has free slots, it
// returns the first market that accepts the job.
func earliest(ctx context.Context, s *cli.Session, job *jobfile.Job, markets []jobfile.Market, reply *market.MarketsReply) (first jobfile.Market, err error) {
	nodes, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return first, err
	}
	var refused error
	found := false
	for _, m := range markets {
		if m.Market == "" && job.Spreads() { // without a market, the site may find one for the job
			return m, nil
		}
		request := jobmsg.SubmitRequest{Key: rand.Text(), Spec: job.Spec, DryRun: true}
		if i := slices.IndexFunc(reply.Markets, func(status market.MarketStatus) bool { return status.Market.Name == m.Market }); i >= 0 && job.Spreads() {
			_, request.Spec = fewestNodes(job, &reply.Markets[i].Market, nodes.Nodes)
		}
		request.Spec.Market = m.Market
		taken, err := cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
		switch {
		case messages.KindOf(err).Retriable():
			return first, err
		case err != nil && refused == nil:
			refused = err
		}
		if err != nil {
			continue
		}
		if roomy(&request.Spec, taken.Market, reply, nodes.Nodes) {
			return m, nil
		}
		if !found {
			first, found = m, true
		}
	}
	if !found {
		return first, refused
	}
	return first, nil
}

// sendSomewhere submits a job. If an sbatch script names no partition, the site chooses a market. If this market cannot
// run the job, sendSomewhere tries the other markets in their order, until one accepts the job.
func sendSomewhere(ctx context.Context, a *cli.App, s *cli.Session, job *jobfile.Job, request *jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
	reply, err := send(ctx, a, s, job, request)
	if kind := messages.KindOf(err); !job.Slurm || request.Spec.Market != "" || request.Site != "" || kind != messages.Invalid && kind != messages.TooLarge || !strings.HasPrefix(messages.Detail(err), "stages[") {
		return reply, err
	}
	markets, failed := cli.Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if failed != nil || len(markets.Markets) < 2 {
		return reply, err
	}
	for _, m := range markets.Markets {
		again := *request
		again.Spec.Market = m.Market.Name
		if reply, failed := send(ctx, a, s, job, &again); failed == nil || messages.KindOf(failed).Retriable() {
			return reply, failed
		}
	}
	return reply, err
}

// roomy reports whether, for each stage of a job, some node has enough free slots for a task now.
func roomy(spec *jobmsg.JobSpec, market messages.Name, reply *market.MarketsReply, nodes []market.NodeStatus) bool {
	for i := range reply.Markets {
		if m := &reply.Markets[i].Market; m.Name == market {
			for k := range spec.Stages {
				if !fitsNow(m, &spec.Stages[k], nodes) {
					return false
				}
			}
			return true
		}
	}
	return false
}

func fitsNow(m *market.Market, s *jobmsg.Stage, nodes []market.NodeStatus) bool {
	for _, class := range m.Classes {
		width, ok := widthIn(m, class, s)
		if !ok {
			continue
		}
		for i := range nodes {
			if n := &nodes[i]; n.State == "Up" && slotsOf(n.Slots, class)-slotsOf(n.Used, class) >= width {
				return true
			}
		}
	}
	return false
}

// widthIn returns the number of slots of a class that a task of a stage takes. If the stage needs another class or
// resource, ok is false.
func widthIn(m *market.Market, class messages.Name, s *jobmsg.Stage) (width int, ok bool) {
	if s.Class != "" && s.Class != class {
		return 0, false
	}
	if unit := m.UnitOf(class); unit != (jobmsg.Resources{}) {
		return unit.Width(s.Needs())
	}
	return 1, true
}

func slotsOf(all []jobmsg.ClassSlots, class messages.Name) int {
	for _, s := range all {
		if s.Class == class {
			return s.Slots
		}
	}
	return 0
}
