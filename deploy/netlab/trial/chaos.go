package trial

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/witness"
	"github.com/candor-grid/candor/messages"
)

// How the trial of chaos goes on: in rounds, each with some faults, after which all that
// was acknowledged in it is checked.
const (
	chaosFor       = time.Minute
	chaosForShort  = 12 * time.Second
	faultsOfRound  = 5
	servedBetween  = 20 // acknowledgements between two faults
	chaosEvery     = 30 * time.Millisecond
	chaosPatience  = 3 * time.Minute // of a request: a fault may last
	chaosGroups    = 6
	chaosWorkers   = 6
	chaosSlots     = 8
	chaosStartWith = 100 * messages.Credit
)

// chaosPlan is a site of three hosts, with agents on the first and on two others.
func chaosPlan(name messages.Name) netlab.Plan {
	return netlab.Plan{Name: name, Racks: 3, Agents: 3, Slots: chaosSlots, Users: slices.Concat(slices.Concat(chaosAccounts()...), chaosUsers()),
		Grant: chaosStartWith, Lease: 10 * time.Second}
}

// chaosAccounts are those that pay one another.
func chaosAccounts() (groups [][]messages.Name) {
	for g := range chaosGroups {
		var group []messages.Name
		for i := range 3 {
			group = append(group, fmt.Sprintf("payer%d-%d", g+1, i+1))
		}
		groups = append(groups, group)
	}
	return groups
}

// chaosUsers are those that submit jobs.
func chaosUsers() (users []messages.Name) {
	for i := range chaosWorkers {
		users = append(users, fmt.Sprintf("worker%d", i+1))
	}
	return users
}

// storm is a trial of chaos under way.
type storm struct {
	*member
	rng    *rand.Rand
	w      *witness.Witness
	struck map[string]int
}

// chaos has faults of all kinds befall the hosts of a site, drawn by the seed, while
// clients with a record of their own use it.
func chaos(ctx context.Context, t *trial, all []*member) error {
	dir, err := openDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := all[0]
	s := &storm{member: m, rng: rand.New(rand.NewPCG(t.Seed, 1)), struck: map[string]int{}}
	t.log("seed %d", t.Seed)
	if s.w, err = m.witness(ctx, dir); err != nil {
		return err
	}
	defer s.w.Close()
	last := either(t, chaosFor, chaosForShort)
	if t.For > 0 {
		last = t.For
	}
	for begun := time.Now(); time.Since(begun) < last; {
		if err := s.round(ctx); err != nil {
			return err
		}
	}
	s.report()
	return m.verify(ctx)
}

func (m *member) witness(ctx context.Context, dir string) (*witness.Witness, error) {
	return witness.New(ctx, witness.Config{Site: m.Name, Connect: m.Connect, Operator: netlab.Operator, Groups: chaosAccounts(), Workers: chaosUsers(),
		Dir: dir, Every: chaosEvery, Patience: chaosPatience, Seed: m.trial.Seed, Plant: m.trial.Plant})
}

// round has some faults happen and checks what was acknowledged meanwhile.
func (s *storm) round(ctx context.Context) error {
	if err := s.w.Begin(ctx); err != nil {
		return err
	}
	err := s.strikes(ctx)
	s.w.End()
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.w.Check(ctx); err != nil {
		return err
	}
	c, broken := s.w.Counts()
	s.trial.log("%d acknowledged, %d read, %d faults; %d lost, %d doubled, %d microcredits wrong", c.Acknowledged, c.Read, s.faults(), c.Lost, c.Doubled, c.Wrong)
	if len(broken) > 0 {
		s.trial.log("BROKEN: %s", broken[len(broken)-1])
	}
	return nil
}

func (s *storm) faults() (n int) {
	for _, times := range s.struck {
		n += times
	}
	return n
}

func (s *storm) strikes(ctx context.Context) error {
	for range faultsOfRound {
		if err := within(ctx, patience, func(ctx context.Context) error { return s.w.AwaitServed(ctx, servedBetween) }); err != nil {
			return err
		}
		h := s.Racks[s.rng.IntN(len(s.Racks))]
		s.struck["kill -9"]++
		h.Kill()
		if err := wait(ctx, time.Duration(s.rng.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := revive(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// report says what was done to the site and what came of it.
func (s *storm) report() {
	t := s.trial
	c, broken := s.w.Counts()
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		t.count("fault: "+name, s.struck[name])
	}
	t.count("faults", s.faults())
	t.count("acknowledged", c.Acknowledged)
	t.count("of them submissions of jobs", c.Jobs)
	t.count("read", c.Read)
	t.count("refused for good", c.Refused)
	t.count("given up", c.GivenUp)
	t.count("lost", c.Lost)
	t.count("doubled", c.Doubled)
	t.count("wrong microcredits", int(c.Wrong))
	t.count("histories that fit no order", c.Disordered)
	t.count("histories too long to decide", c.Undecided)
	t.count("tasks that ran twice, one run recorded", c.RanTwice)
	t.time("longest time without an acknowledgement", c.Silence)
	t.time("longest wait of a request", c.Longest)
	t.breaksEach(broken)
	if !c.Sound() && len(broken) == 0 {
		t.breaks("the counts are not sound: %+v", c)
	}
}
