package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Options configure a trial.
type Options struct {
	Dir     string         // an empty directory for all files
	Binary  string         // the build that is tested
	Newer   string         // another build; the trial of upgrades replaces the first one by it
	Network netlab.Network // network for the hosts; from then on it belongs to the lab
	Short   bool           // run a short version, which takes less than a minute
	Seed    uint64         // seed of the trials of chaos and storms
	For     time.Duration  // shortest duration of the trials of chaos and storms; 0 means their usual duration
	Acks    int            // least number of acknowledgements in the trial of chaos
	Faults  int            // least number of faults in the trial of chaos
	Only    []string       // faults that may happen in the trials of chaos and storms; an empty list means all
	Plant   string         // fault that the trial of chaos inserts and must find, one of witness.Plants; "" means none
	Log     io.Writer      // where progress is written
}

type trial struct {
	Options
	*netlab.Lab
	Report
	began time.Time
}

type scenario struct {
	sites []messages.Name
	// plan returns the plan of each site. If plan is nil, every site gets the default plan.
	plan func(messages.Name) netlab.Plan
	// ready prepares the lab before its sites start. It may be nil.
	ready func(*netlab.Lab) error
	run   func(ctx context.Context, t *trial, all []*member) error
}

var scenarios = map[string]scenario{
	"failover":   {sites: siteNames[:1], run: failover},
	"stops":      {sites: siteNames[:1], ready: leaving, run: stops},
	"standstill": {sites: siteNames[:1], run: standstill},
	"isolation":  {sites: siteNames[:1], run: isolation},
	"links":      {sites: siteNames[:1], run: severed},
	"upgrade":    {sites: siteNames[:1], ready: leaving, run: upgrade},
	"federation": {sites: siteNames, ready: joined, run: federation},
	"cut":        {sites: siteNames, ready: joined, run: cut},
	"chaos":      {sites: siteNames[:1], plan: chaosPlan, run: chaos},
	"liar":       {sites: siteNames, plan: liarPlan, ready: joined, run: lies},
	"storms":     {sites: siteNames[:2], plan: stormyPlan, ready: joined, run: storms},
	"restore":    {sites: siteNames[:2], plan: duoPlan, ready: joined, run: restore},
	"quotes":     {sites: siteNames, ready: joined, run: quotes},
	"tls":        {sites: siteNames[:2], plan: securePlan, ready: joined, run: roads},
	"gateways":   {sites: siteNames[:2], plan: duoPlan, ready: byGateways, run: roads},
	"leaders":    {sites: siteNames[:2], plan: duoPlan, ready: joined, run: leaders},
}

// Names lists the scenarios.
func Names() []string { return slices.Sorted(maps.Keys(scenarios)) }

// Run runs a scenario, and reports the broken promises. It returns an error if the scenario did not run to its end.
func Run(ctx context.Context, name string, o Options) (Report, error) {
	s, ok := scenarios[name]
	if !ok {
		return Report{}, messages.Errorf(messages.NotFound, "scenario %q: is unknown; the scenarios are %s", name, strings.Join(Names(), ", "))
	}
	var plans []netlab.Plan
	for _, site := range s.sites {
		if s.plan != nil {
			plans = append(plans, s.plan(site))
		} else {
			plans = append(plans, plan(site, len(s.sites) > 1))
		}
	}
	t := &trial{Options: o, Report: Report{Scenario: name, Network: o.Network.Kind(), Sites: describe(plans)}, began: time.Now()}
	var err error
	if t.Lab, err = netlab.New(o.Dir, o.Binary, o.Network, plans...); err != nil {
		return t.Report, err
	}
	if s.ready != nil {
		err = s.ready(t.Lab)
	}
	if err == nil {
		err = t.start(ctx)
	}
	if err == nil {
		err = t.run(ctx, s)
	}
	err = errors.Join(err, t.Close())
	t.Seconds = time.Since(t.began).Seconds()
	return t.Report, err
}

func (t *trial) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := t.Start(ctx); err != nil {
		return err
	}
	t.log("all hosts serve")
	t.time("start of all sites", time.Since(t.began))
	return nil
}

func (t *trial) run(ctx context.Context, s scenario) error {
	all, err := t.members()
	defer func() {
		for _, m := range all {
			_ = m.operator.Close()
		}
	}()
	if err == nil && len(all) > 1 {
		err = t.awaitLinks(ctx, all)
	}
	if err != nil {
		return err
	}
	err = s.run(ctx, t, all)
	for _, m := range all {
		t.checkLogs(m)
	}
	return err
}

// stack matches the output of a Go program that panics.
var stack = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIGSEGV|goroutine \d+ \[)(?s:.{0,900})`)

// checkLogs checks that no process of a site ended with a Go stack.
func (t *trial) checkLogs(m *member) {
	for _, h := range m.Hosts() {
		if said := h.Log(0); stack.MatchString(said) {
			t.breaks("%s of %s printed a Go stack: %s", h.Name, m.Name, stack.FindString(said))
		}
	}
}

// either returns the first value, or the second one in the short version of a trial.
func either[T any](t *trial, full, short T) T {
	if t.Short {
		return short
	}
	return full
}

// These are the longest times for several steps of a trial. The last constant is what each user is granted at the
// start.
const (
	startWithin   = 2 * time.Minute
	patience      = time.Minute     // for a request with all its repetitions, and for most waits
	finishWithin  = 3 * time.Minute // time until all submitted jobs have run
	verifyWithin  = time.Hour       // time to verify all books: millions of records, each with a signature
	startingGrant = 1_000_000 * messages.Credit
)

func (t *trial) log(format string, arguments ...any) {
	fmt.Fprintf(t.Log, "%6.1f s  %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, arguments...))
}

func describe(plans []netlab.Plan) string {
	var names []string
	for _, p := range plans {
		names = append(names, p.Name)
	}
	p := plans[0]
	return fmt.Sprintf("%s × (%d replicas + %d agents)", strings.Join(names, ", "), p.Racks, p.Agents)
}

// siteNames are the sites of a federation. Trials with one site use the first name.
var siteNames = []messages.Name{"west", "east", "north"}

// `users` are the users of the site in a trial of one site. `federated` are the users of each site in a trial of a
// federation.
var (
	users     = []messages.Name{"alice", "bob", "carol"}
	federated = append(slices.Clone(users), "dave", "erin")
)

func plan(name messages.Name, federation bool) netlab.Plan {
	p := netlab.Plan{Name: name, Racks: 3, Agents: 4, Slots: 4, Users: users, Grant: startingGrant, Lease: 10 * time.Second}
	if federation {
		p.Users = federated
	}
	return p
}

// quick returns a job that has one short task.
func quick(int) job.SubmitRequest {
	return job.SubmitRequest{Spec: job.JobSpec{Name: "quick", Budget: messages.Credit,
		Stages: []job.Stage{{Name: "main", Attempts: 3, Class: "map", Command: []string{"true"}}}}}
}
