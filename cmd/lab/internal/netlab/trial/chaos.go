package trial

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/witness"
	"github.com/candor-grid/candor/messages"
)

// The trial of chaos has rounds. After the faults of each round, it checks everything that was acknowledged in the
// round.
const (
	chaosFor           = time.Minute
	chaosForShort      = 12 * time.Second
	faultsOfRound      = 8 // smallest number of faults in a round
	faultsOfRoundShort = 2
	servedBetween      = 20 // number of acknowledgements between two faults
	toldOfRound        = 20 // number of a round's broken promises that are shown
	chaosEvery         = 20 * time.Millisecond
	healWithin         = 10 * time.Minute // longest time until a site is healthy after a fault
	chaosPatience      = healWithin       // longest time for one request
	chaosGroups        = 16
	chaosWorkers       = 6
	chaosSlots         = 8
	chaosDisk          = 6 << 30 // space for a million acknowledgements and two more copies of a log
	chaosStartWith     = 100 * messages.Credit
)

func chaosPlan(name messages.Name) netlab.Plan {
	return netlab.Plan{Name: name, Racks: 3, Agents: 3, Slots: chaosSlots, Users: slices.Concat(slices.Concat(chaosAccounts()...), chaosUsers()),
		Grant: chaosStartWith, Lease: 10 * time.Second, Disk: chaosDisk}
}

// chaosAccounts returns the accounts that pay each other, in groups.
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

func chaosUsers() (users []messages.Name) {
	for i := range chaosWorkers {
		users = append(users, fmt.Sprintf("worker%d", i+1))
	}
	return users
}

// storm is the state of a chaos trial, which causes random faults.
type storm struct {
	*member
	rng     *rand.Rand
	w       *witness.Witness                // nil in a federation
	served  func(ctx context.Context) error // waits until the clients are served again
	struck  map[string]int                  // number of faults, by name
	silence map[string]time.Duration        // longest time without service, by fault
	skipped []string                        // faults that the machine does not permit
	told    int                             // number of broken promises that were logged

	under                   map[*netlab.Host]string // the present fault of each host
	also                    *netlab.Host            // host that has a second fault
	deaf                    []*netlab.Host          // hosts that are cut off in one direction
	since                   int64                   // length of the host's log, in bytes, when files of the running host were damaged
	newer                   bool                    // the hosts run the newer build
	noticed                 int                     // number of hosts that reported damaged or old files
	noticedRunning          int                     // number of hosts that reported damaged or old files while they ran
	refusedByName           int                     // number of refused starts that named the damaged file
	mostOnDisks, mostMemory int64                   // largest size of the racks' disks, and largest memory of all hosts, in bytes
}

// chaos makes random faults happen to the hosts of a site while clients record its answers. The seed decides the
// faults.
func chaos(ctx context.Context, t *trial, all []*member) error {
	dir, err := openDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := newStorm(all[0])
	if s.w, err = s.witness(ctx, dir); err != nil {
		return err
	}
	defer s.w.Close()
	s.served = func(ctx context.Context) error {
		return s.await(ctx, func(ctx context.Context) error { return s.w.AwaitServed(ctx, servedBetween) })
	}
	possible := s.possible()
	for begun := time.Now(); !s.enough(begun) && err == nil; {
		err = s.round(ctx, possible, begun)
	}
	if err == nil {
		err = s.verifyAll(ctx)
	}
	if err != nil && ctx.Err() == nil {
		t.breaks("%v", err)
		err = nil
	}
	s.report()
	return err
}

func newStorm(m *member) *storm {
	m.trial.log("%s: seed %d", m.Name, m.trial.Seed)
	return &storm{member: m, rng: rand.New(rand.NewPCG(m.trial.Seed, 1)), under: map[*netlab.Host]string{}, struck: map[string]int{}, silence: map[string]time.Duration{}}
}

func (t *trial) duration() time.Duration {
	if t.For > 0 || t.Acks > 0 || t.Faults > 0 {
		return t.For
	}
	return either(t, chaosFor, chaosForShort)
}

// enough reports whether the trial has run long enough, and has enough acknowledgements and enough faults.
func (s *storm) enough(begun time.Time) bool {
	c, _ := s.w.Counts()
	return time.Since(begun) >= s.trial.duration() && c.Acknowledged >= s.trial.Acks && s.faults() >= s.trial.Faults
}

func (s *storm) possible() (list []fault) {
	disk, namespaces := s.Racks[0].HasDisk(), netlab.Inside()
	for _, f := range faults {
		if only := s.trial.Only; len(only) > 0 && !slices.Contains(only, f.name) {
			continue
		}
		if f.needs == "disk" && !disk || f.needs == "network" && !namespaces {
			s.skipped = append(s.skipped, f.name)
			continue
		}
		list = append(list, f)
	}
	return list
}

// verifyAll verifies the books that the site reports, and the books on the disk of each stopped replica. The second
// check finds damage that nobody has noticed.
func (s *storm) verifyAll(ctx context.Context) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	undetected := 0
	for _, h := range s.Racks {
		s.trial.log("%s of %s: verifying the journal on its disk", h.Name, s.Name)
		if err := h.Stop(); err != nil {
			return err
		}
		if output, err := s.Candor(ctx, netlab.Operator, "bank", "verify", "--history", filepath.Join(h.Dir(), messages.Bank, h.Name)); err != nil {
			undetected++
			s.trial.breaks("the journal that %s has: %v: %s", h.Name, err, output)
		}
	}
	s.trial.count("replicas with undetected damage", undetected)
	return nil
}

func (m *member) witness(ctx context.Context, dir string) (*witness.Witness, error) {
	return witness.New(ctx, witness.Config{Site: m.Name, Connect: m.Connect, Operator: netlab.Operator, Groups: chaosAccounts(), Workers: chaosUsers(), Markets: m.Markets(),
		Dir: dir, Every: chaosEvery, Patience: chaosPatience, Seed: m.trial.Seed, Plant: m.trial.Plant})
}

func (s *storm) round(ctx context.Context, possible []fault, begun time.Time) error {
	if err := s.w.Begin(ctx); err != nil {
		return err
	}
	err := s.strikes(ctx, possible)
	if err == nil {
		err = s.served(ctx)
	}
	s.w.End()
	if err != nil {
		return err
	}
	if err := s.await(ctx, s.settle); err != nil {
		return err
	}
	if err := s.w.Check(ctx); err != nil {
		return err
	}
	s.progress(begun)
	_, broken := s.w.Counts()
	for _, b := range broken[s.told:min(len(broken), s.told+toldOfRound)] {
		s.trial.log("BROKEN: %s", b)
	}
	if more := len(broken) - s.told - toldOfRound; more > 0 {
		s.trial.log("BROKEN: %d more", more)
	}
	s.told = len(broken)
	return nil
}

func (s *storm) progress(begun time.Time) {
	t, took := s.trial, time.Since(begun)
	c, _ := s.w.Counts()
	memory, disks := t.Memory(), s.disks()
	s.mostMemory, s.mostOnDisks = max(s.mostMemory, memory), max(s.mostOnDisks, disks)
	t.log("%d%s acknowledged (%.0f a second), %d read, %d%s faults (%.0f an hour); %d lost, %d doubled, %d microcredits wrong; %d MiB in memory, %d MiB on disks",
		c.Acknowledged, goal(t.Acks), float64(c.Acknowledged)/took.Seconds(), c.Read, s.faults(), goal(t.Faults), float64(s.faults())/took.Hours(),
		c.Lost, c.Doubled, c.Wrong, memory>>20, disks>>20)
}

func goal(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", n)
}

func (s *storm) disks() (sum int64) {
	for _, h := range s.Racks {
		sum += h.Used()
	}
	return sum
}

func (s *storm) faults() (n int) {
	for _, times := range s.struck {
		n += times
	}
	return n
}

// upTo draws a time between 0 and d, uniformly.
func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d) + 1)) }

// mostlyShort draws a time between 0 and d. Half of the drawn times are below d/4.
func (s *storm) mostlyShort(d time.Duration) time.Duration {
	u := s.rng.Float64()
	return time.Duration(u * u * float64(d))
}

// strikes makes faults happen one after another, and sometimes two at the same time.
func (s *storm) strikes(ctx context.Context, possible []fault) error {
	for range either(s.trial, faultsOfRound, faultsOfRoundShort) {
		if err := s.served(ctx); err != nil {
			return fmt.Errorf("before the next fault: %w", err)
		}
		f := s.draw(possible)
		if f.alone {
			if err := s.well(ctx); err != nil {
				return err
			}
		}
		if err := s.strike(ctx, &f, s.target(&f), possible); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		s.silence[f.name] = max(s.silence[f.name], s.w.Silence())
	}
	return nil
}

// draw draws a fault. A fault that must happen alone takes as long as several of the other faults together. So if such
// a fault is drawn, draw keeps it only in one of four cases. In the other cases, draw draws a second time, and keeps
// the second fault.
func (s *storm) draw(possible []fault) fault {
	f := possible[s.rng.IntN(len(possible))]
	if f.alone && s.rng.IntN(4) > 0 {
		f = possible[s.rng.IntN(len(possible))]
	}
	return f
}

func (s *storm) target(f *fault) *netlab.Host {
	hosts := s.Racks
	if f.agents {
		hosts = s.Hosts()
	}
	return hosts[s.rng.IntN(len(hosts))]
}

// strike makes a fault happen to a host, and ends it after some time. Meanwhile a second fault may happen.
func (s *storm) strike(ctx context.Context, f *fault, h *netlab.Host, possible []fault) error {
	s.struck[f.name]++
	s.under[h] = f.name
	defer delete(s.under, h)
	lasts := s.mostlyShort(f.most)
	s.trial.log("%s of %s: %s, for %v", h.Name, s.Name, f.name, lasts.Round(time.Millisecond))
	if err := f.strike(ctx, s, h); err != nil {
		return err
	}
	if err := wait(ctx, lasts/2); err != nil {
		return err
	}
	if err := s.another(ctx, f, possible); err != nil {
		return err
	}
	if err := wait(ctx, lasts/2); err != nil {
		return err
	}
	return f.mend(ctx, s, h)
}

// The method another causes a second fault while the first one lasts. It happens to a host that has no fault. At least
// one rack stays without a fault, so that a rack that starts again finds a majority.
func (s *storm) another(ctx context.Context, first *fault, possible []fault) error {
	if first.alone {
		return nil
	}
	f := possible[s.rng.IntN(len(possible))]
	h := s.target(&f)
	racks := slices.DeleteFunc(slices.Clone(s.Racks), func(h *netlab.Host) bool { return s.under[h] == "" })
	if slices.Contains(s.Racks, h) && len(racks) > 1 {
		return nil
	}
	if f.alone || s.under[h] != "" || slices.Contains(slices.Collect(maps.Values(s.under)), f.name) {
		return nil
	}
	return s.strike(ctx, &f, h, possible)
}

func (s *storm) report() {
	t := s.trial
	c, broken := s.w.Counts()
	s.reportFaults()
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
	for _, verb := range slices.Sorted(maps.Keys(c.Verbs)) {
		t.count("answered: "+verb, c.Verbs[verb].Answered)
	}
	for _, verb := range slices.Sorted(maps.Keys(c.Verbs)) {
		t.time("longest wait: "+verb, c.Verbs[verb].Longest)
	}
	t.time("longest time without an acknowledgement", c.Silence)
	t.add("on the disks of the racks", float64(s.mostOnDisks>>20), "MiB")
	t.add("in memory of all hosts", float64(s.mostMemory>>20), "MiB")
	t.breaksEach(broken)
	if !c.Sound() && len(broken) == 0 {
		t.breaks("the counts contradict one another: %+v", c)
	}
}

func (s *storm) reportFaults() {
	t, of := s.trial, "" // `of` is the name of the site, if there are several sites
	if len(t.Lab.Sites) > 1 {
		of = " of " + s.Name
	}
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		t.count("fault"+of+": "+name, s.struck[name])
	}
	t.count("faults"+of, s.faults())
	for _, name := range slices.Sorted(maps.Keys(s.silence)) {
		t.time("longest silence: "+name, s.silence[name])
	}
	for _, name := range s.skipped {
		t.log("the machine does not permit: %s", name)
	}
	t.count("hosts"+of+" that noticed what their disks lacked", s.noticed)
	t.count("running hosts"+of+" that noticed damage before their next start", s.noticedRunning)
	t.count("damaged files"+of+" that were refused by name", s.refusedByName)
}
