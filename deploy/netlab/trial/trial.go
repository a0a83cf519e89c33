package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/messages"
)

// Options are what a trial is given.
type Options struct {
	Dir     string         // an empty directory for everything
	Binary  string         // the build that is tried
	Newer   string         // another build, which replaces it in the trial of upgrades
	Network netlab.Network // that the lab takes over
	Short   bool           // a version that fits into a minute
	Log     io.Writer      // progress
}

// trial is one under way.
type trial struct {
	Options
	*netlab.Lab
	Report
	began time.Time
}

// scenario is a trial that can be run.
type scenario struct {
	plans func(short bool) []netlab.Plan
	// ready prepares the lab before it starts; nil: nothing.
	ready func(*netlab.Lab) error
	run   func(context.Context, *trial) error
}

var scenarios = map[string]scenario{
	"failover":   {plans: oneSite, run: failover},
	"isolation":  {plans: oneSite, run: isolation},
	"upgrade":    {plans: oneSite, ready: leaving, run: upgrade},
	"federation": {plans: threeSites, ready: joined, run: federation},
	"cut":        {plans: threeSites, ready: joined, run: cut},
	"quotes":     {plans: threeSites, ready: joined, run: quotes},
}

// Names lists the scenarios.
func Names() (names []string) {
	for name := range scenarios {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Run runs a scenario. An error says that it could not be run to its end; a promise
// that was broken is in the report.
func Run(ctx context.Context, name string, o Options) (Report, error) {
	s, ok := scenarios[name]
	if !ok {
		return Report{}, messages.Errorf(messages.NotFound, "scenario %q: there is none; there are %s", name, strings.Join(Names(), ", "))
	}
	plans := s.plans(o.Short)
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
		err = s.run(ctx, t)
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

// Bounds of what has to happen sooner or later.
const (
	startWithin   = 2 * time.Minute
	patience      = time.Minute     // of a request with all its repetitions, and of most waits
	finishWithin  = 3 * time.Minute // until all that was submitted has run
	startingGrant = 1_000_000 * messages.Credit
)

// log says how far the trial is.
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

// users of every site.
var users = []messages.Name{"alice", "bob", "carol"}

// oneSite is a site of three replicas and four agents.
func oneSite(bool) []netlab.Plan { return []netlab.Plan{plan("west")} }

func plan(name messages.Name) netlab.Plan {
	return netlab.Plan{Name: name, Racks: 3, Agents: 4, Slots: 4, Users: slices.Clone(users), Grant: startingGrant, Lease: 10 * time.Second}
}

// quick is a job of one short task.
func quick(int) messages.SubmitRequest {
	return messages.SubmitRequest{Spec: messages.JobSpec{Name: "quick", Budget: messages.Credit,
		Stages: []messages.Stage{{Name: "main", Class: "map", Command: []string{"true"}}}}}
}
