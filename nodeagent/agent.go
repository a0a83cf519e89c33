package nodeagent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/hooks"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
	"github.com/candor-grid/candor/nodeagent/state"
)

// Agent is the node agent of one node.
type Agent struct {
	c       Config
	owned   bool           // the agent made the runner, so it also closes the runner
	real    runner.Real    // the same runner; nil if it starts no processes
	lasting runner.Lasting // the same runner; nil if its tasks end together with the agent
	metrics *metrics
	queue   *queue

	// Only the agent's goroutine uses these fields, from state to wasIn.
	state      *state.State
	running    map[messages.Attempt]*running
	markets    map[messages.Name]bus.Subscription
	cancel     context.CancelFunc // cancels the running request
	lastsUntil messages.Time      // end of the lease, as the runner last got it
	unable     bool               // there is no executor, so tasks cannot be started
	can        []messages.Name    // abilities, as the leader last got them
	full       bool               // the disk is almost full
	retired    bool               // set by Retire; then the node claims no tasks
	wasIn      bool               // whether the node held a lease when this was last logged

	files    *files
	hooks    *hooks.Hooks // nil if the site has no hooks
	readable readable
	steps    *steps // nil if steps cannot reach other tasks

	subscriptions []bus.Subscription // subscriptions to the verbs directives and logs
	ready         chan struct{}
	ended         chan struct{} // closed when the agent's goroutine has ended
	life          context.Context
	die           context.CancelFunc
	closing       sync.Once
	closed        error
}

type running struct {
	process runner.Process
	granted time.Time
	follows bool // the runner starts this task by itself, when the slot of another task becomes free
}

// Start starts an agent. It returns at once; [Agent.Ready] tells when the node is registered. When ctx ends, the agent
// closes as if Close were called.
func Start(ctx context.Context, c Config) (*Agent, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	owned, err := c.openRunner()
	if err != nil {
		return nil, err
	}
	seed := cmp.Or(c.Seed, rand.Uint64())
	a := &Agent{
		c: c, owned: owned, queue: newQueue(), metrics: newMetrics(c.Metrics),
		state:   state.New(c.Slots, rand.New(rand.NewPCG(seed, seed))),
		running: map[messages.Attempt]*running{}, markets: map[messages.Name]bus.Subscription{},
		ready: make(chan struct{}), ended: make(chan struct{}),
	}
	if a.real, _ = c.Runner.(runner.Real); a.real != nil {
		a.can = a.abilities()
		a.state.SetAbilities(a.can)
	}
	if a.lasting, _ = c.Runner.(runner.Lasting); a.lasting != nil {
		a.state.SetFeeds()
		a.lasting.Notify(func(able bool) {
			a.queue.post(func(messages.Time) {
				a.unable = !able
				a.pause()
			})
		})
	}
	a.c.Log = c.Log.With(zap.String("node", c.Node))
	a.life, a.die = context.WithCancel(context.Background())
	a.files = &files{site: c.Site, node: c.Node, dir: c.Dir, bus: c.Bus, log: a.c.Log, inputs: openInputs(c.Dir),
		manifests: &manifests{state: c.Dir, log: a.c.Log, life: a.life, users: map[string]int{}}}
	if a.hooks, err = hooks.Open(a.life, hooks.Config{Prolog: c.Prolog, Epilog: c.Epilog, Node: c.Node, Dir: filepath.Join(c.Dir, "hooks"), Log: a.c.Log}); err != nil {
		a.die()
		return nil, errors.Join(err, a.release())
	}
	a.adopt()
	err = a.openSteps()
	if err == nil {
		err = a.listen()
	}
	if err != nil {
		a.die()
		return nil, errors.Join(err, a.release())
	}
	context.AfterFunc(ctx, func() { a.Close() }) // the error does not matter here: every caller of Close gets it
	if a.owned {
		a.watchDisk()
	}
	go a.loop()
	return a, nil
}

// pause stops the node from claiming tasks if it cannot start tasks, its disk is almost full, or the agent is retired.
// It also tells the leader the node's present abilities.
func (a *Agent) pause() {
	a.state.Pause(a.unable || a.full || a.retired)
	if a.real == nil {
		return
	}
	if can := a.abilities(); !slices.Equal(can, a.can) {
		a.can = can
		a.state.SetAbilities(can)
		a.c.Log.Info("the abilities of the node have changed", zap.Strings("abilities", can))
	}
}

// Retire stops the node from claiming tasks, or lets it claim them again. When the node's GPUs have changed, the caller
// retires the agent and restarts it once [Agent.Idle] returns true.
func (a *Agent) Retire(yes bool) {
	a.queue.post(func(messages.Time) {
		a.retired = yes
		a.pause()
	})
}

// Idle reports whether the agent is retired and no task runs here.
func (a *Agent) Idle() bool {
	answer := make(chan bool, 1)
	a.queue.post(func(messages.Time) { answer <- a.retired && a.state.Running() == 0 })
	select {
	case idle := <-answer:
		return idle
	case <-a.ended:
		return false
	}
}

// abilities returns the abilities that the agent tells the leader. They are the abilities of the runner, and one
// ability for each reason to claim no tasks (full disk, changed GPUs).
func (a *Agent) abilities() []messages.Name {
	can := slices.Clone(a.real.Abilities())
	if a.full {
		can = append(can, agent.AbilityFull)
	}
	if a.retired {
		can = append(can, agent.AbilityGPUs)
	}
	return can
}

// Ready returns a channel that is closed when the node has registered for the first time.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Close ends the tasks, reports their ends to the leader, and stops. It takes at most CloseTimeout of the
// configuration.
func (a *Agent) Close() error {
	a.leave()
	a.closing.Do(func() {
		select {
		case <-a.ended:
		case <-time.After(a.c.CloseTimeout):
			a.c.Log.Warn("the agent was closed before it had reported the end of all tasks")
		}
		a.die()
		<-a.ended
		a.sayGoodbye()
		a.closed = a.release()
	})
	return a.closed
}

// goodbyeWithin is how long a closing agent waits for the leader to confirm that nothing runs here any more.
const goodbyeWithin = time.Second

// sayGoodbye tells the leader that nothing runs here any more. Otherwise the node would count as lost when its lease
// ends. An agent that leaves tasks running sends nothing.
func (a *Agent) sayGoodbye() {
	if a.c.LeaveRunning || a.state.Session() == 0 || a.state.Running() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeWithin)
	defer cancel()
	_, err := ask[agent.RegisterReply](ctx, a, messages.VerbRegister, &agent.RegisterRequest{Session: a.state.Session(), Leaving: true})
	if err != nil {
		a.c.Log.Log(levelOf(err), "cannot tell the leader that this node stops", zap.Error(err))
	}
}

// leave begins to close the agent. It ends the tasks, or leaves them running for the next agent of the node.
func (a *Agent) leave() {
	if a.c.LeaveRunning {
		a.die()
		return
	}
	a.queue.post(func(messages.Time) { a.state.Close() })
}

func (a *Agent) release() (err error) {
	a.steps.close()
	for _, s := range slices.AppendSeq(a.subscriptions, maps.Values(a.markets)) {
		err = errors.Join(err, s.Stop())
	}
	if a.lasting != nil && a.c.LeaveRunning {
		return errors.Join(err, a.lasting.Detach())
	}
	if a.owned {
		err = errors.Join(err, a.c.Runner.Close())
	}
	return err
}

// loop gives events to the state and carries out its actions, until the agent has ended.
func (a *Agent) loop() {
	defer close(a.ended)
	defer a.queue.close()
	wake := make(chan struct{}, 1)
	timer := boottime.NewTimer(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	defer timer.Close()
	timer.Reset(0)
	var events []event
	for {
		select {
		case <-a.life.Done():
			a.kill()
			return
		case <-a.queue.ready:
		case <-wake:
		}
		events = a.queue.take(events)
		now := a.c.Clock()
		for _, e := range events {
			e(now)
		}
		if a.act(now) {
			return
		}
		timer.Reset(a.untilWake())
	}
}

func (a *Agent) untilWake() time.Duration {
	at := a.state.Wake()
	if at == 0 {
		return time.Hour
	}
	return max(0, at.Sub(a.c.Clock()).Std())
}

// act carries out the state's actions. It reports whether all tasks have ended and the agent may stop.
func (a *Agent) act(now messages.Time) (over bool) {
	do := a.state.Act(now)
	a.noteSession()
	a.keep(now)
	a.follow(do.Markets)
	for _, s := range do.Start {
		a.start(s)
	}
	for _, s := range do.Follow {
		a.line(s)
	}
	for _, attempt := range do.Withdraw { // withdrawn first, because these tasks must not get the slots of stopped tasks
		if r := a.running[attempt]; r != nil {
			r.process.(runner.Follower).Withdraw()
		}
	}
	for _, attempt := range do.Suspend {
		a.suspend(attempt, true)
	}
	for _, attempt := range do.Resume {
		a.suspend(attempt, false)
	}
	for _, s := range do.Stop {
		a.stop(s)
	}
	if a.real != nil {
		for _, attempt := range do.Reported { // the leader has confirmed the end of these attempts
			a.real.Confirm(attempt)
		}
	}
	for _, market := range do.Fetch {
		a.metrics.fetches.Inc()
		go a.fetch(market)
	}
	if do.Request != nil {
		a.transmit(do.Request)
	}
	return do.Closed
}

// noteSession logs that a session with the leader began or ended. The first session closes the channel of Ready.
func (a *Agent) noteSession() {
	in := a.state.Joined()
	if in == a.wasIn {
		return
	}
	a.wasIn = in
	if !in {
		a.metrics.sessions.Inc()
		a.c.Log.Warn("lost the lease: every task is killed, then the node registers again")
		return
	}
	a.c.Log.Info("node registered", zap.Uint64("session", a.state.Session()))
	select {
	case <-a.ready:
	default:
		close(a.ready)
	}
}

func (a *Agent) start(s state.Start) {
	r := &running{granted: time.Now()}
	a.running[s.Grant.Attempt] = r
	a.metrics.starts.Inc()
	switch {
	case s.Program.Allocation:
		r.process = a.startInAllocation(s)
		return
	case hasFiles(s.Program), a.hooks != nil && s.Program.Job != 0: // a probe runs no hooks
		r.process = a.startWithFiles(s)
		return
	}
	r.process = a.c.Runner.Start(runner.Task{Grant: s.Grant, Program: s.Program}, a.report)
}

// line puts a task in the runner's queue. The runner starts the task when a slot becomes free. Tasks that the agent
// must start itself, for example tasks with files, stay only in the agent's state.
func (a *Agent) line(s state.Start) {
	attempt, ok := s.Grant.Attempt, !hasFiles(s.Program) && !s.Program.Allocation && a.hooks == nil
	var p runner.Follower
	if ok {
		p, ok = a.lasting.Follow(runner.Task{Grant: s.Grant, Program: s.Program}, a.report,
			func(f agent.Finished, at time.Duration) {
				a.queue.post(func(now messages.Time) { a.turn(now, f, attempt, at) })
			})
	}
	if !ok {
		a.state.Keep(attempt)
		return
	}
	a.running[attempt] = &running{process: p, follows: true}
}

// turn records that a task ended, and that another task (`next`) then started on its slot. The argument `at` is the
// time of the start, on the clock of package boottime.
func (a *Agent) turn(now messages.Time, f agent.Finished, next messages.Attempt, at time.Duration) {
	ago := max(0, boottime.Now()-at)
	if r := a.running[next]; r != nil && r.follows {
		r.follows, r.granted = false, time.Now().Add(-ago)
		a.metrics.starts.Inc()
	}
	a.forget(f)
	a.state.Turned(now.Add(messages.Duration(-ago)), f, next)
}

func (a *Agent) stop(s state.Stop) {
	r := a.running[s.Attempt]
	if r == nil {
		return
	}
	grace := a.c.Grace
	if s.Kill {
		grace = 0
	}
	if s.Last != "" {
		r.process.Say(s.Last)
	}
	r.process.Stop(grace)
}

func (a *Agent) suspend(attempt messages.Attempt, suspended bool) {
	if r := a.running[attempt]; r != nil {
		r.process.Suspend(suspended)
	}
}

func (a *Agent) finish(f agent.Finished) {
	a.forget(f)
	a.state.Ended(f)
}

// forget removes a task that has ended, or will not be started.
func (a *Agent) forget(f agent.Finished) {
	if r := a.running[f.Attempt]; r != nil && !r.follows {
		a.metrics.finish(&f, r.granted)
	}
	delete(a.running, f.Attempt)
}

// kill ends all running tasks when the agent must stop at once.
func (a *Agent) kill() {
	if a.c.LeaveRunning {
		return
	}
	for _, r := range a.running {
		r.process.Stop(0)
	}
}
