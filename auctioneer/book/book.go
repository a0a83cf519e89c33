package book

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Limits of a book. They are the same on every replica, as they decide what a
// command does.
const (
	MaxActive      = 500_000 // jobs that have not ended
	RetainEnded    = 20_000  // ended jobs that are remembered, with their keys
	MaxNodes       = 100_000
	DefaultAttempt = 3 // attempts of a task, where its stage does not say
)

// retainEnded is RetainEnded, but for tests.
var retainEnded = RetainEnded

// Book is the replicated state. It is not safe for concurrent use.
type Book struct {
	now       messages.Time
	lastJob   messages.JobID
	jobs      map[messages.JobID]*Job
	ended     []messages.JobID // remembered ones, in the order in which they ended
	keys      map[string]messages.JobID
	nodes     []*Node // in the order of their first registration
	names     map[messages.Name]uint32
	effects   []Effect                   // ascending IDs
	lastID    uint64                     // of an effect
	tariffs   map[messages.Name][]Tariff // by market
	markets   []messages.Market          // that were applied; nil: those of the configuration
	applies   uint64                     // how often they were
	notes     map[messages.Name]map[messages.JobID][]int64
	quotes    []*Quote // ascending IDs
	lastQuote uint64
	roams     map[messages.JobID]*Roam // that other sites run
	returned  []messages.JobID         // of them, those that are remembered after their end, in its order
	tokens    []messages.TokenState    // join tokens, in the order in which they were made

	// Worked out from the above.
	waiters map[messages.JobID][]messages.JobID       // that wait for a job, ascending
	metered map[messages.Name]map[messages.JobID]*Job // by market with tariffs: jobs that have had a task claimed
	visits  map[messages.Visit]messages.JobID         // of other sites
	pending map[messages.Name]int                     // jobs of an account that have not ended
	guests  map[messages.Name]Guests                  // jobs of other sites, by site
	ending  []*Job                                    // whose waiters are still to be looked at
	listed  map[messages.Name][]messages.JobID        // by account, its jobs, wherever they run, ascending; "": all
	ordered map[messages.JobID]*Job                   // whose start was ordered for good, and that have not ended

	careful bool // the exchange that is being applied looks at the health of nodes
	watched bool
	changes Changes // for the local observer; no part of the state
}

// Changes is what commands touched since it was last taken.
type Changes struct {
	Jobs    map[messages.JobID]bool
	Nodes   map[uint32]bool
	Effects bool
}

// Effect is something that has to happen outside, at least once, because of
// what was committed. It stays until it is confirmed.
type Effect struct {
	ID   uint64
	Kind EffectKind
	Job  messages.JobID
	Legs []Leg // of a Round
}

// EffectKind says what is to happen.
type EffectKind uint8

// The kinds of effect.
const (
	Charge  EffectKind = iota // post the job's charge against its hold, free the rest
	Observe                   // leave the job's observation in the estimator's stream
	Round                     // move credits between jobs' accounts, all or nothing
)

// New returns an empty book.
func New() *Book {
	return &Book{
		jobs:  map[messages.JobID]*Job{},
		keys:  map[string]messages.JobID{},
		names: map[messages.Name]uint32{},
		roams: map[messages.JobID]*Roam{},

		tariffs: map[messages.Name][]Tariff{},
		notes:   map[messages.Name]map[messages.JobID][]int64{},
		visits:  map[messages.Visit]messages.JobID{},
		waiters: map[messages.JobID][]messages.JobID{},
		pending: map[messages.Name]int{}, guests: map[messages.Name]Guests{},
		metered: map[messages.Name]map[messages.JobID]*Job{},
		listed:  map[messages.Name][]messages.JobID{},
		ordered: map[messages.JobID]*Job{},
	}
}

// apply takes other markets. What a market that goes had for tariffs and notes
// goes with it.
func (b *Book) apply(c *Apply) any {
	if err := b.unapplied(c.Unless); err != nil {
		return err
	}
	for _, name := range c.Idle {
		if n := b.Live(name); n > 0 {
			return messages.Errorf(messages.Conflict, "markets: %s has %d jobs that have not ended; cancel them or wait", name, n)
		}
	}
	b.markets = c.Markets
	b.applies++
	for name := range b.tariffs {
		if !slices.ContainsFunc(c.Markets, func(m messages.Market) bool { return m.Name == name }) {
			delete(b.tariffs, name)
			delete(b.metered, name)
		}
	}
	maps.DeleteFunc(b.notes, func(name messages.Name, _ map[messages.JobID][]int64) bool {
		return !slices.ContainsFunc(c.Markets, func(m messages.Market) bool { return m.Name == name })
	})
	return nil
}

// unapplied refuses what was checked against markets that have changed since.
func (b *Book) unapplied(since uint64) error {
	if since != 0 && since != b.applies+1 {
		return messages.Errorf(messages.NotLeader, "the markets have just been changed; ask again")
	}
	return nil
}

// Applies is how many times markets were applied.
func (b *Book) Applies() uint64 { return b.applies }

// Markets are the markets that were applied; nil: none were.
func (b *Book) Markets() []messages.Market { return b.markets }

func newChanges() Changes {
	return Changes{Jobs: map[messages.JobID]bool{}, Nodes: map[uint32]bool{}}
}

// Now is the latest time of any command.
func (b *Book) Now() messages.Time { return b.now }

// Job returns a job, nil if there is none. It must not be changed.
func (b *Book) Job(id messages.JobID) *Job { return b.jobs[id] }

// ByKey returns the job that an account submitted under a key, or nil.
func (b *Book) ByKey(account messages.Name, key string) *Job {
	return b.jobs[b.keys[account+"/"+key]]
}

// LastJob is the highest job number given out.
func (b *Book) LastJob() messages.JobID { return b.lastJob }

// Active is the number of jobs that have not ended.
func (b *Book) Active() int { return len(b.jobs) - len(b.ended) }

// Jobs calls yield for each job, in no particular order.
func (b *Book) Jobs(yield func(*Job) bool) {
	for _, j := range b.jobs {
		if !yield(j) {
			return
		}
	}
}

// Nodes returns the nodes in the order of their first registration. They must
// not be changed.
func (b *Book) Nodes() []*Node { return b.nodes }

// Node returns a node by name, nil if there is none.
func (b *Book) Node(name messages.Name) *Node {
	if i, ok := b.names[name]; ok {
		return b.nodes[i]
	}
	return nil
}

// Effects returns up to limit effects that wait, oldest first.
func (b *Book) Effects(limit int) []Effect {
	return append([]Effect(nil), b.effects[:min(limit, len(b.effects))]...)
}

// EachEffect calls yield for each effect that waits, oldest first.
func (b *Book) EachEffect(yield func(Effect) bool) {
	for _, e := range b.effects {
		if !yield(e) {
			return
		}
	}
}

// Watch starts to collect changes, with everything there is as the first, or
// stops it. Nobody who does not take them should let them pile up.
func (b *Book) Watch(on bool) {
	b.watched, b.changes = on, newChanges()
	if !on {
		return
	}
	for id := range b.jobs {
		b.touch(id)
	}
	for id := range b.roams {
		b.touch(id)
	}
	for i := range b.nodes {
		b.touchNode(uint32(i))
	}
	b.changes.Effects = true
}

// TakeChanges returns what was touched since the last call.
func (b *Book) TakeChanges() Changes {
	c := b.changes
	b.changes = newChanges()
	return c
}

func (b *Book) touch(job messages.JobID) {
	if b.watched {
		b.changes.Jobs[job] = true
	}
}

func (b *Book) touchNode(i uint32) {
	if b.watched {
		b.changes.Nodes[i] = true
	}
}

func (b *Book) effect(kind EffectKind, job messages.JobID, legs ...Leg) {
	b.lastID++
	b.effects = append(b.effects, Effect{ID: b.lastID, Kind: kind, Job: job, Legs: legs})
	b.changes.Effects = true
}

// confirm takes what became of effects. Those that follow from it come after those
// that wait, and jobs are forgotten once all effects that are left are known. A job
// that is gone, as an earlier version could forget too much, needs no answer.
func (b *Book) confirm(c *Confirm) any {
	outcome := make(map[uint64]*Confirmation, len(c.Effects))
	for i := range c.Effects {
		outcome[c.Effects[i].Effect] = &c.Effects[i]
	}
	var wait, over []Effect
	for _, e := range b.effects {
		if outcome[e.ID] == nil {
			wait = append(wait, e)
		} else {
			over = append(over, e)
		}
	}
	b.effects = wait
	for i := range over {
		switch e, o := &over[i], outcome[over[i].ID]; {
		case e.Kind == Charge && b.jobs[e.Job] != nil:
			b.charged(b.jobs[e.Job], o)
		case e.Kind == Round:
			b.rounded(e, o)
		}
	}
	b.forget()
	b.changes.Effects = true
	return nil
}

// charged ends a job once the bank has answered for it.
func (b *Book) charged(j *Job, o *Confirmation) {
	j.State = j.Outcome
	j.Charged = o.Amount
	j.Refused = o.Refused
	b.ended = append(b.ended, j.ID)
	b.count(j.Account, -1)
	b.countGuest(j, -1, 0)
	b.effect(Observe, j.ID)
	b.touch(j.ID)
}

// forget drops the oldest ended jobs beyond what is retained, unless an effect
// still speaks of them.
func (b *Book) forget() {
	if len(b.ended) <= retainEnded {
		return
	}
	named := b.named()
	for len(b.ended) > retainEnded {
		id := b.ended[0]
		if named[id] {
			return
		}
		j := b.jobs[id]
		b.ended = b.ended[1:]
		delete(b.keys, j.Account+"/"+j.Key)
		if j.Visit != nil {
			delete(b.visits, j.Visit.Visit)
			b.countGuest(j, 0, -1)
		}
		delete(b.jobs, id)
		b.unlist(j.Account, id)
		b.touch(id)
	}
}

// named are the jobs of which effects speak.
func (b *Book) named() map[messages.JobID]bool {
	named := make(map[messages.JobID]bool, len(b.effects))
	for i := range b.effects {
		named[b.effects[i].Job] = true
		for _, l := range b.effects[i].Legs {
			named[l.From], named[l.To] = true, true
		}
	}
	return named
}

// Names says whether every job that an effect speaks of is there. Those of others
// have nothing to happen any more.
func (b *Book) Names(e *Effect) bool {
	for _, l := range e.Legs {
		if b.jobs[l.From] == nil || b.jobs[l.To] == nil {
			return false
		}
	}
	return b.jobs[e.Job] != nil
}

// Touch counts a job among the changes again.
func (b *Book) Touch(id messages.JobID) {
	if b.jobs[id] != nil {
		b.touch(id)
	}
}
