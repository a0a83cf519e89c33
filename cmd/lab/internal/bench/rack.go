package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// hall is a set of simulated nodes that use the protocol of agents. Each node has one slot. The nodes are divided into
// racks. All nodes of a rack share one connection, and one copy of the market's state.
type hall struct {
	site  messages.Name
	lease time.Duration
	racks []*rack

	mu    sync.Mutex
	holds bool // true: tasks run until the method release ends them; false: they end as soon as they start
	held  int  // number of tasks that run until the method release ends them
	want  int  // number of tasks for which the function await waits
	full  chan struct{}
	ended int // number of ended tasks that the leader knows
	// longest is the duration of the longest exchange since the last count.
	longest time.Duration
	starts  []float64 // seconds from each claim to the start of its task, since the last count
}

// rack is a group of nodes on one connection.
type rack struct {
	hall    *hall
	bus     bus.Bus
	directs bool // the auctioneer says that the market directs tasks

	mu        sync.Mutex
	rng       *rand.Rand
	term, seq uint64
	pending   int // number of tasks that the market announced
	jobs      sampler.Sampler
	fetching  bool
	nodes     map[messages.Name]*simulated
	asleep    []*simulated // nodes without a task; the first has waited longest
	turns     []*simulated // nodes with something to send
	turn      sync.Cond
}

// simulated is a simulated node. The field `talks` is true in two cases: the node is in the queue rack.turns, or a
// worker waits for an answer to the node.
type simulated struct {
	name      messages.Name
	session   uint64 // 0 means it must register
	exchange  agent.Exchange
	repeats   bool // the last exchange had no answer
	heard     time.Time
	talks     bool
	asleep    bool
	attempts  []messages.Attempt // attempts of the node
	suspended []messages.Attempt // the suspended attempts of the node
	began     map[messages.Attempt]messages.Time
	version   uint64
	dry       uint64           // number of the vector with which a claim found no work
	finished  []agent.Finished // ends of tasks to report
}

const (
	rackWorkers = 16
	rackRetry   = 100 * time.Millisecond
	rackWithin  = 10 * time.Second
)

// openHall connects nodes, and returns when all are registered.
func openHall(ctx context.Context, site messages.Name, nodes, racks int, connect func() (bus.Bus, error)) (*hall, error) {
	h := &hall{site: site, holds: true, lease: 30 * time.Second}
	for i := range racks {
		b, err := connect()
		if err != nil {
			return nil, err
		}
		r := &rack{hall: h, bus: b, rng: rand.New(rand.NewPCG(uint64(i), 1)), nodes: map[messages.Name]*simulated{}}
		r.turn.L = &r.mu
		h.racks = append(h.racks, r)
	}
	for i := range nodes {
		r := h.racks[i%racks]
		name := fmt.Sprint("rack", i%racks, "-", i/racks)
		r.nodes[name] = &simulated{name: name}
	}
	return h, inParallel(ctx, racks, racks, func(number int) error { return h.racks[number-1].open(ctx) })
}

func (r *rack) open(ctx context.Context) error {
	for name, n := range r.nodes {
		if err := r.register(ctx, n); err != nil {
			return err
		}
		if _, err := r.bus.Subscribe(messages.DirectiveSubject(r.hall.site, name), func(_ string, data []byte) {
			var d agent.Directive
			if wire.Unmarshal(data, wire.Detect(data, ""), &d) == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.obey(n, d.Stop, d.Suspended, d.Version)
				r.sendOrSleep(n)
			}
		}); err != nil {
			return err
		}
	}
	if _, err := r.bus.Subscribe(messages.VectorSubject(r.hall.site, benchMarket), func(_ string, data []byte) {
		var v agent.Vector
		if wire.Unmarshal(data, wire.Detect(data, ""), &v) == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.hear(&v)
		}
	}); err != nil {
		return err
	}
	r.mu.Lock()
	r.fetch()
	r.mu.Unlock()
	for range rackWorkers {
		go r.work()
	}
	go r.beat()
	return nil
}

func (r *rack) register(ctx context.Context, n *simulated) error {
	r.mu.Lock()
	session := r.rng.Uint64() | 1
	r.mu.Unlock()
	reply, err := bus.Call[agent.RegisterReply](ctx, r.bus, messages.Subject(r.hall.site, messages.Auctioneer, messages.VerbRegister, n.name),
		agent.RegisterRequest{Session: session, Slots: []job.ClassSlots{{Class: class, Slots: 1}}})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.directs = len(reply.Markets) > 0 && reply.Markets[0].Ordered
	n.session, n.heard, n.exchange = session, time.Now(), agent.Exchange{Session: session}
	n.attempts, n.suspended, n.finished, n.version, n.repeats = nil, nil, nil, 0, false
	n.began = map[messages.Attempt]messages.Time{}
	r.sleep(n)
	return nil
}

// beat renews the leases of nodes that have nothing else to send.
func (r *rack) beat() {
	for range time.Tick(r.hall.lease / 20) {
		r.mu.Lock()
		for _, n := range r.nodes {
			if time.Since(n.heard) > r.hall.lease/3 {
				r.speak(n)
			}
		}
		r.mu.Unlock()
	}
}

// hear handles a vector, which is the market's state that the auctioneer publishes. It wakes sleeping nodes. The more
// tasks are pending, the more nodes it wakes.
func (r *rack) hear(v *agent.Vector) {
	if v.Term < r.term || v.Term == r.term && v.Seq <= r.seq {
		return
	}
	c := &v.Classes[0]
	if v.Base != 0 && (v.Term != r.term || v.Base != r.seq) {
		r.fetch()
		return
	}
	take := r.jobs.Update
	if v.Base == 0 {
		take = r.jobs.Replace
	}
	if take(c.Jobs) != nil {
		return
	}
	r.term, r.seq, r.pending = v.Term, v.Seq, c.Pending
	wanted := float64(c.Pending) + 2*math.Sqrt(float64(c.Pending)) + 3
	part := min(1, wanted/float64(max(c.Idle, len(r.asleep), 1)))
	if c.Pending == 0 {
		return
	}
	for range int(math.Ceil(part*float64(len(r.asleep)) - r.rng.Float64())) {
		n := r.asleep[0]
		r.asleep = r.asleep[1:]
		n.asleep = false
		r.speak(n)
	}
}

func (r *rack) fetch() {
	if r.fetching {
		return
	}
	r.fetching = true
	var first messages.Name
	for first = range r.nodes {
		break
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), rackWithin)
		defer cancel()
		v, err := bus.Call[agent.Vector](ctx, r.bus, messages.Subject(r.hall.site, messages.Auctioneer, messages.VerbVector, first), agent.VectorRequest{Market: benchMarket})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fetching = false
		if err == nil && len(v.Classes) > 0 {
			r.hear(&v)
		}
	}()
}

// speak puts a node into the queue of the rack. A worker will send the node's exchange.
func (r *rack) speak(n *simulated) {
	if !n.talks {
		n.talks = true
		r.turns = append(r.turns, n)
		r.turn.Signal()
	}
}

func (r *rack) sleep(n *simulated) {
	if !n.asleep {
		n.asleep = true
		r.asleep = append(r.asleep, n)
	}
}

// work is one worker. It sends the exchanges of the rack's nodes, one at a time. It takes the next node from a queue.
func (r *rack) work() {
	for {
		r.mu.Lock()
		for len(r.turns) == 0 {
			r.turn.Wait()
		}
		n := r.turns[0]
		r.turns = r.turns[1:]
		if n.session == 0 {
			r.mu.Unlock()
			err := r.register(context.Background(), n)
			r.mu.Lock()
			n.talks = false
			if err != nil {
				r.speak(n)
			}
			r.mu.Unlock()
			continue
		}
		r.say(n)
		request, began := n.exchange, time.Now()
		r.mu.Unlock()
		reply, err := r.ask(n, &request)
		if err != nil && messages.KindOf(err) != messages.Fenced {
			time.Sleep(rackRetry)
		}
		r.mu.Lock()
		n.talks = false
		r.answered(n, reply, time.Since(began), err)
		r.mu.Unlock()
	}
}

// say sends a node's next exchange. If the last exchange had no answer, say prepares no new exchange, and sends the
// last one again.
func (r *rack) say(n *simulated) {
	if n.repeats {
		return
	}
	n.exchange = agent.Exchange{Session: n.session, Seq: n.exchange.Seq + 1, Finished: n.finished}
	n.finished = nil
	if len(n.attempts) == len(n.suspended) && r.pending > 0 {
		if job := r.jobs.Sample(r.rng.Float64()); job != 0 {
			n.exchange.Claims = []agent.Claim{{Market: benchMarket, Class: class, Job: job, Slots: 1}}
		}
	}
}

func (r *rack) ask(n *simulated, x *agent.Exchange) (*agent.ExchangeReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rackWithin)
	defer cancel()
	payload, err := wire.Marshal(x, wire.Msgpack)
	if err != nil {
		return nil, err
	}
	data, err := r.bus.Request(ctx, messages.Subject(r.hall.site, messages.Auctioneer, messages.VerbExchange, n.name), payload)
	if err != nil {
		return nil, err
	}
	reply := new(agent.ExchangeReply)
	return reply, wire.Unmarshal(data, wire.Msgpack, reply)
}

func (r *rack) answered(n *simulated, reply *agent.ExchangeReply, took time.Duration, err error) {
	if err != nil {
		if n.repeats = true; messages.KindOf(err) == messages.Fenced {
			n.session = 0
		}
		r.speak(n)
		return
	}
	n.repeats, n.heard = false, time.Now()
	r.hall.tell(len(n.exchange.Finished), took, len(reply.Grants) > 0)
	for _, g := range reply.Grants {
		n.attempts = append(n.attempts, g.Attempt)
		n.began[g.Attempt] = messages.TimeOf(n.heard)
	}
	r.obey(n, reply.Stop, reply.Suspended, reply.Version)
	r.hall.start(len(reply.Grants))
	// agents do the same, because the market decides only after it knows that a task has ended
	again := r.directs && len(n.exchange.Finished) > 0
	if len(reply.Grants) == 0 && len(n.exchange.Claims) > 0 && !again {
		n.dry = r.seq
	}
	r.sendOrSleep(n)
}

func (r *rack) obey(n *simulated, stop, suspended []messages.Attempt, version uint64) {
	for _, a := range stop {
		r.end(n, a, agent.Stopped)
	}
	if version > n.version {
		n.version, n.suspended = version, nil
		for _, a := range suspended {
			if slices.Contains(n.attempts, a) {
				n.suspended = append(n.suspended, a)
			}
		}
	}
}

func (r *rack) end(n *simulated, a messages.Attempt, how agent.Outcome) {
	i := slices.Index(n.attempts, a)
	if i < 0 {
		return
	}
	n.attempts = slices.Delete(n.attempts, i, i+1)
	n.suspended = slices.DeleteFunc(n.suspended, func(s messages.Attempt) bool { return s == a })
	n.finished = append(n.finished, agent.Finished{Attempt: a, Outcome: how, Started: n.began[a], Ended: messages.TimeOf(time.Now())})
	delete(n.began, a)
}

// sendOrSleep is one step of a simulated node. Usually the node's running tasks end at once, unless the benchmark keeps
// all tasks running (h.holds). If the node then has ended tasks to report, or has a free slot and may get work, it
// sends an exchange. Otherwise, if it has a free slot, it sleeps.
func (r *rack) sendOrSleep(n *simulated) {
	if !r.hall.holdsTasks() {
		for _, a := range slices.Clone(n.attempts) {
			if !slices.Contains(n.suspended, a) {
				r.end(n, a, agent.Exited)
			}
		}
	}
	free := len(n.attempts) == len(n.suspended)
	switch {
	case len(n.finished) > 0 || free && r.pending > 0 && !n.asleep && n.dry != r.seq:
		r.speak(n)
	case free:
		r.sleep(n)
	}
}

func (h *hall) holdsTasks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holds
}

func (h *hall) start(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held += n; h.full != nil && h.held >= h.want {
		close(h.full)
		h.full = nil
	}
}

// tell is called after an exchange with the leader. It counts the n ended tasks that the exchange reported. `took` is
// the duration of the exchange. If `starts` is true, the exchange also started a task.
func (h *hall) tell(n int, took time.Duration, starts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended += n; starts {
		h.starts = append(h.starts, took.Seconds())
	}
	h.longest = max(h.longest, took)
}

// await returns a channel that is closed when a number of further tasks have started.
func (h *hall) await(tasks int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held, h.want = 0, tasks
	h.full = make(chan struct{})
	return h.full
}

// release ends all tasks, also suspended ones. If `last` is true, tasks that start later run until the next call of
// release. Otherwise they end as soon as they start.
func (h *hall) release(last bool) {
	h.mu.Lock()
	h.holds = last
	h.mu.Unlock()
	for _, r := range h.racks {
		r.mu.Lock()
		for _, n := range r.nodes {
			for _, a := range slices.Clone(n.attempts) {
				r.end(n, a, agent.Exited)
			}
			if len(n.finished) > 0 {
				r.speak(n)
			}
		}
		r.mu.Unlock()
	}
}

// count returns how many ended tasks the leader knows. It also measures how long exchanges took since the last call, in
// seconds. `longest` is the longest time of all exchanges. `start` is the 99th percentile of the times of exchanges
// that started a task.
func (h *hall) count() (ended int, longest, start float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.starts) > 0 {
		start = quantile(h.starts, 0.99)
	}
	longest, h.longest, h.starts = h.longest.Seconds(), 0, nil
	return h.ended, longest, start
}
