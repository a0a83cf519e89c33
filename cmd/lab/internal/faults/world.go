package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// epoch is the beginning of a run. It is not 0, because a time of 0 means never.
const epoch = messages.Time(1_000_000_000_000_000)

// World is the state of a federation in a run.
type World struct {
	Bug    Bug
	plan   *Plan
	seed   uint64
	rng    *rand.Rand
	now    messages.Time
	queue  clock.Queue[func()]
	net    *network.Network
	nets   uint64 // number of networks before this one
	active []Event
	sites  [3]*site
	asked  map[string]any // by log entry of a bank: the request in it, a []money.Transfer or *clearing.Command
	words  words
	flight [3][3]messages.Credits // amount on its way from the first site to the second, when it was last computed
	steps  uint64
	lies   bool // one of the sites lies
	failed error
	story  *story // nil if no story is recorded
}

func newWorld(p *Plan, events []Event, seed uint64, bug Bug) *World {
	w := &World{Bug: bug, lies: slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Lie }), plan: p, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: epoch,
		asked: map[string]any{}, words: newWords()}
	w.relay()
	for i := range w.sites {
		w.sites[i] = newSite(w, i)
	}
	for _, s := range w.sites {
		s.open()
	}
	for _, s := range w.sites {
		s.populate()
	}
	return w
}

func (w *World) violate(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf("at %v: %s", w.now.Sub(epoch), fmt.Sprintf(format, args...))
	}
}

func (w *World) check(s *site, err error) {
	if err != nil {
		w.violate("%v, at %s", err, s.name)
	}
}

// after calls the function `do` when the duration d has passed. It does not call it if the host is down at that time,
// or has restarted meanwhile.
func (w *World) after(h *host, d messages.Duration, do func()) {
	life := h.life
	w.queue.Push(w.now.Add(d), func() {
		if h.life == life && !h.down {
			do()
		}
	})
}

func (w *World) send(from, to string, deliver func()) {
	w.net.Send(w.now, from, to, func(at messages.Time) { w.queue.Push(at, deliver) })
}

// call sends a request to the leader of a group. It repeats the request each second, until there is an answer, or until
// `gone` returns true.
func (w *World) call(from string, to *group, gone func() bool, ask func(r *replica, answer func(any)), answered func(any)) {
	done, hint := false, 0
	var try func()
	try = func() {
		if done || gone() {
			return
		}
		r := to.replicas[hint]
		hint = (hint + 1) % 3
		w.send(from, r.host.name, func() {
			if !r.serving() {
				return
			}
			ask(r, func(reply any) {
				w.send(r.host.name, from, func() {
					if !done && !gone() {
						done = true
						answered(reply)
					}
				})
			})
		})
		w.queue.Push(w.now.Add(second), try)
	}
	try()
}

// never always returns false. The functions transfer and bank repeat a call until it is answered, or until their
// argument `gone` returns true. With never, they repeat it until it is answered.
func never() bool { return false }

// transfer sends transfers to a site's bank in the name of its auctioneer. It repeats this until they are answered or
// gone() is true. The bank answers each transfer, or refuses all of them.
func (s *site) transfer(from string, gone func() bool, list []money.Transfer, answered func([]money.TransferResult, error)) {
	tries := 0
	s.call(from, s.banks, gone, func(r *replica, answer func(any)) {
		if s.Bug == WaitsForPeers && r.state.(*bankState).clearing.Outstanding() > 0 {
			return
		}
		if tries++; s.Bug == DoubleCharge && tries > 1 {
			list = anew(list, tries)
		}
		r.shell.(*bankLeader).transfer(list, answer)
	}, func(reply any) {
		list, _ := reply.([]money.TransferResult)
		err, _ := reply.(error)
		answered(list, err)
	})
}

// anew is a bug that a test inserts into an auctioneer, to see that the checks find it. When a charge is repeated, it
// gets a new identifier, and is paid from the account instead of the job's hold. So the job pays twice.
func anew(list []money.Transfer, try int) []money.Transfer {
	out := slices.Clone(list)
	for i, t := range list {
		if t.Kind == money.Post {
			out[i].ID, out[i].Kind, out[i].Pending = fmt.Sprint(t.ID, "/", try), money.Posted, ""
		}
	}
	return out
}

// bank sends a command of the clearing to a site's bank. The argument `by` is the account in whose name the command is
// sent.
func (s *site) bank(from string, gone func() bool, by messages.Name, c clearing.Command, answered func(clearing.Result)) {
	s.call(from, s.banks, gone, func(r *replica, answer func(any)) {
		again := c
		again.By = by
		r.shell.(*bankLeader).propose(&again, answer)
	}, func(reply any) {
		if result, ok := reply.(clearing.Result); ok {
			answered(result)
		}
	})
}
