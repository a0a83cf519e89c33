package faults

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

const second = messages.Duration(1e9)

const (
	Loss      = "loss"       // a part of the messages is lost
	Repeat    = "repeat"     // a part of the messages arrives twice
	Reorder   = "reorder"    // each message is late by up to two seconds
	Delay     = "delay"      // each message is late by one second
	Partition = "partition"  // the target is cut off from all others
	Isolate   = "isolate"    // the target, a site, is cut off from the other sites
	Crash     = "crash"      // the target is off for some time; data that was not synced is lost
	Power     = "power"      // all machines of the target, which is a site, crash at once; without a target, all machines of all sites do
	SlowDisk  = "slow-disk"  // syncs of the target take two seconds
	LostDisk  = "lost-disk"  // the target is off for some time, and comes back with an empty disk
	Damage    = "damage"     // the target is off for some time, and a file of its bank's history is damaged or missing
	Skew      = "skew"       // the target's clock is wrong for some time
	Jump      = "jump"       // the target's clock jumps and stays wrong
	Lie       = "lie"        // a site without books sends the target, a site, anything that it can sign
	BlackHole = "black-hole" // every task that the target, an agent, starts fails at once
)

// Kinds lists the kinds of fault.
var Kinds = []string{Loss, Repeat, Reorder, Delay, Partition, Isolate, Crash, Power, SlowDisk, Skew, Jump, Lie, BlackHole, LostDisk, Damage}

// Event is one fault. At is the time at which it begins, counted from the beginning of the run. For is its duration.
type Event struct {
	At   messages.Duration `yaml:"at" json:"at"`
	Kind string            `yaml:"kind" json:"kind"`
	// Target is a site (east, north or west), one of its machines (east.m0 to east.m2) or one of its agents (east.n0
	// on).
	Target string            `yaml:"target,omitempty" json:"target,omitempty"`
	For    messages.Duration `yaml:"for,omitempty" json:"for,omitempty"`
	Part   float64           `yaml:"part,omitempty" json:"part,omitempty"` // for loss and repeat: part of the messages
	By     messages.Duration `yaml:"by,omitempty" json:"by,omitempty"`     // for skew and jump: how far the clock is moved
}

// Plan describes a run of a federation. Events lists the faults of the run. If Events is empty, the faults are drawn at
// random: Rates has, for each kind of fault, the mean number of such faults in a run.
type Plan struct {
	Jobs     int                `yaml:"jobs" json:"jobs"`                   // jobs of each site
	Trades   int                `yaml:"trades" json:"trades"`               // payments and authorisations of each site's users for others
	Nodes    int                `yaml:"nodes,omitempty" json:"nodes"`       // nodes of each site
	Duration messages.Duration  `yaml:"duration,omitempty" json:"duration"` // time with faults
	Rates    map[string]float64 `yaml:"rates,omitempty" json:"rates,omitempty"`
	Seed     uint64             `yaml:"seed,omitempty" json:"seed,omitempty"` // seed with which Events were drawn
	Events   []Event            `yaml:"events,omitempty" json:"events,omitempty"`
}

// Default returns a plan with faults of every kind.
func Default() *Plan {
	p := &Plan{Jobs: 4, Trades: 6, Nodes: 2, Duration: 60 * second, Rates: map[string]float64{}}
	for _, k := range Kinds {
		p.Rates[k] = 1.5
	}
	return p
}

// Decode reads a plan. Its errors are Invalid and begin with name:line:column.
func Decode(name string, text []byte) (*Plan, error) {
	p := Default()
	p.Rates = nil
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if err := yamlfile.Strict(text, p); err != nil && !errors.Is(err, io.EOF) {
		return nil, file.Misread(err)
	}
	if p.Rates == nil && p.Events == nil {
		p.Rates = Default().Rates
	}
	if path, err := p.check(); err != nil {
		n, _ := file.Find(path)
		return nil, file.Errorf(n, "%s: %v", path, err)
	}
	return p, nil
}

// mostSpan is the longest duration that a plan or a fault may have.
const mostSpan = 24 * 3600 * second

// check returns the path of the first wrong field and an error about it.
func (p *Plan) check() (string, error) {
	switch {
	case p.Jobs < 0 || p.Jobs > 1000:
		return "jobs", fmt.Errorf("must be from 0 to 1000, is %d", p.Jobs)
	case p.Trades < 0 || p.Trades > 1000:
		return "trades", fmt.Errorf("must be from 0 to 1000, is %d", p.Trades)
	case p.Nodes < 1 || p.Nodes > 100:
		return "nodes", fmt.Errorf("must be from 1 to 100, is %d", p.Nodes)
	case p.Duration < second || p.Duration > mostSpan:
		return "duration", fmt.Errorf("must be from 1s to 24h, is %v", p.Duration)
	case p.Rates != nil && p.Events != nil:
		return "rates", errors.New("faults are either listed or drawn: leave out events or rates")
	}
	for kind, rate := range p.Rates {
		if !slices.Contains(Kinds, kind) || !(rate >= 0 && rate <= 1000) {
			return "rates." + kind, fmt.Errorf("must be one of %v with a rate from 0 to 1000, is %g", Kinds, rate)
		}
	}
	for i := range p.Events {
		if field, err := p.Events[i].check(p); err != nil {
			return fmt.Sprintf("events[%d].%s", i, field), err
		}
	}
	return "", nil
}

func (e *Event) check(p *Plan) (string, error) {
	switch {
	case !slices.Contains(Kinds, e.Kind):
		return "kind", fmt.Errorf("must be one of %v, is %.64q", Kinds, e.Kind)
	case e.At < 0 || e.At > p.Duration:
		return "at", fmt.Errorf("must be within the duration of %v, is %v", p.Duration, e.At)
	case e.For < 0 || e.For > mostSpan:
		return "for", fmt.Errorf("must be from 0s to 24h, is %v", e.For)
	case !(e.Part >= 0 && e.Part <= 0.9):
		return "part", fmt.Errorf("must be from 0 to 0.9, is %g", e.Part)
	case e.By < -3600*second || e.By > 3600*second:
		return "by", fmt.Errorf("must be within an hour, is %v", e.By)
	}
	if targets := p.targets(e.Kind); !slices.Contains(targets, e.Target) {
		return "target", fmt.Errorf("must be one of %q, is %.64q", targets, e.Target)
	}
	return "", nil
}

func (p *Plan) targets(kind string) (out []string) {
	switch kind {
	case Power:
		return append(slices.Clone(siteNames), "")
	case Isolate, Lie:
		return siteNames
	case Partition, Crash, SlowDisk, LostDisk, Damage, Skew, Jump, BlackHole:
	default:
		return []string{""}
	}
	for _, s := range siteNames {
		for i := range 3 {
			if kind != BlackHole { // a black hole can only be at an agent, because machines run no tasks
				out = append(out, fmt.Sprint(s, ".m", i))
			}
		}
		for i := range p.Nodes {
			if kind != SlowDisk && kind != LostDisk && kind != Damage { // these faults need a disk, and agents sync nothing
				out = append(out, fmt.Sprint(s, ".n", i))
			}
		}
	}
	return out
}

// draw returns the faults that the plan lists. If the plan lists none, it draws faults from the seed.
func (p *Plan) draw(seed uint64) []Event {
	if p.Events != nil {
		return p.Events
	}
	rng := rand.New(rand.NewPCG(seed, 0x706c616e))
	var events []Event
	for _, kind := range Kinds {
		for range int(p.Rates[kind] + rng.Float64()) {
			events = append(events, p.drawOne(kind, rng))
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

func (p *Plan) drawOne(kind string, rng *rand.Rand) Event {
	span := func(least, most messages.Duration) messages.Duration {
		return least + messages.Duration(rng.Int64N(int64(most)))
	}
	targets := p.targets(kind)
	e := Event{At: span(0, p.Duration), Kind: kind, For: span(second, 20*second), Target: targets[rng.IntN(len(targets))]}
	switch kind {
	case Loss, Repeat:
		e.Part = 0.1 + 0.4*rng.Float64()
	case Skew, Jump:
		if e.By = span(-30*second, 60*second); strings.HasSuffix(e.Target, wrongest) {
			e.By *= 120 // by up to an hour, not half a minute
		}
	case Isolate:
		if rng.IntN(2) == 0 { // the fault ends long after the other faults
			e.For = span(p.Duration+patience, 30*second)
		}
	}
	return e
}

// YAML writes the plan as Decode reads it.
func (p *Plan) YAML() (string, error) {
	out, err := yaml.Marshal(p)
	if p.Events != nil && len(p.Events) == 0 { // an empty list means no events; a missing list means drawn events
		out = append(out, "events: []\n"...)
	}
	return string(out), err
}
