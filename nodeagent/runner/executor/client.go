package executor

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/backoff"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

var _ runner.Lasting = (*Client)(nil)

// Client is a [runner.Lasting] that runs its tasks in an executor. It starts an executor if there is none, and a new
// one when an executor ends.
type Client struct {
	config Config
	life   context.Context
	die    context.CancelFunc
	over   chan struct{} // closed when the goroutine has ended

	telling   sync.Mutex // held while notify is called; taken before mu
	mu        sync.Mutex
	conn      *conn // nil while there is no executor
	abilities []messages.Name
	tasks     map[messages.Attempt]*remote
	found     map[messages.Attempt]frame // tasks of the executor that nobody has adopted
	programs  map[*agent.Program]uint64
	follows   bool                      // a task can follow another on its slot
	outdated  bool                      // the executor should be replaced once it has no tasks
	untold    map[messages.Attempt]bool // attempts whose reported end the caller has not confirmed
	handing   bool                      // the executor was told to end
	questions map[uint64]chan<- *frame
	numbers   uint64
	closing   bool
	still     bool            // the executor does not answer, but has not ended
	until     time.Duration   // when the executor must kill the tasks, by package boottime; 0: not told yet
	notify    func(able bool) // the function given to Notify; nil means none
}

// remote is a task of the executor. An order that is given while there is no connection is sent with the next
// connection.
type remote struct {
	client    *Client
	attempt   messages.Attempt
	done      func(agent.Finished)
	suspended bool
	stopped   bool
	grace     time.Duration                       // for a task that was stopped: time until it is killed
	turned    func(agent.Finished, time.Duration) // called when this task takes the slot of another task
	held      *runner.Task                        // the description, for a task that waits for the next executor
}

// maxPrograms bounds how many programs an executor remembers.
const maxPrograms = 1024

// Open connects to the executor of a state directory, and starts one if there is
// none.
func Open(ctx context.Context, c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Client{config: c, tasks: map[messages.Attempt]*remote{}, untold: map[messages.Attempt]bool{}, over: make(chan struct{}),
		questions: map[uint64]chan<- *frame{}}
	k.life, k.die = context.WithCancel(context.Background())
	conn, err := k.connect(ctx)
	if _, silent := errors.AsType[silentError](err); err != nil && !silent { // a killed executor still accepts connections
		conn, err = k.connect(ctx)
	}
	if err != nil {
		k.die()
		return nil, err
	}
	go k.listen(conn)
	go k.watch()
	return k, nil
}

var errSearchEnded = messages.Errorf(messages.Unavailable, "the search for an executor was ended")

// connect finds or starts the executor, and learns which tasks it has. It gives up on an executor that does not answer.
func (k *Client) connect(ctx context.Context) (*conn, error) {
	slow := time.AfterFunc(k.config.waits.tell, func() {
		k.config.Log.Warn("waiting for the executor, which may still be ending tasks or removing files", zap.String("executor", k.config.holder()))
	})
	defer slow.Stop()
	socket, silence, err := reach(ctx, &k.config)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	c := newConn(socket)
	found := map[messages.Attempt]frame{}
	var abilities []messages.Name
	for {
		_ = socket.SetReadDeadline(time.Now().Add(silence))
		f, err := c.receive()
		if err != nil {
			c.finish()
			return nil, k.noWord(ctx, err, silence)
		}
		switch f.Kind {
		case hello:
			abilities = f.Names
			if err := messages.CheckLevels("the executor that runs this node's tasks", int(f.Number), "this agent", messages.Level); err != nil {
				c.finish()
				return nil, err
			}
		case has:
			found[f.Attempt] = *f
		case ready:
			if !stop() { // from now on the context does not close the connection
				c.finish()
				return nil, errSearchEnded
			}
			_ = socket.SetReadDeadline(time.Time{})
			k.met(c, abilities, found, f.Number >= follows)
			return c, nil
		}
	}
}

// noWord is called when an executor has not sent the list of its tasks. It returns the error for the user.
func (k *Client) noWord(ctx context.Context, err error, silence time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return errSearchEnded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return k.config.silent(silence)
	default:
		return messages.Errorf(messages.Unavailable, "the executor does not say which tasks it has: %v; see %s", err, k.config.log())
	}
}

// met is called when the client has a new connection to an executor. The client may know a task that this executor does
// not have. This task was lost when the previous executor ended.
func (k *Client) met(c *conn, abilities []messages.Name, found map[messages.Attempt]frame, follows bool) {
	k.mu.Lock()
	k.conn, k.abilities, k.found, k.follows = c, abilities, found, follows
	k.programs = map[*agent.Program]uint64{}
	k.handing, k.outdated = false, k.replaceable(abilities[:min(2, len(abilities))])
	var ends []func() // called after the lock is released
	if k.until != 0 {
		k.sendKeep()
	}
	for a, t := range k.tasks {
		f, known := found[a]
		delete(found, a)
		switch {
		case !known && t.held != nil:
			task := *t.held
			t.held = nil
			k.begin(start, task, t)
			if t.suspended || t.stopped {
				k.remind(t, false)
			}
		case !known && t.turned != nil:
			delete(k.tasks, a)
			ends = append(ends, t.giveBack)
		case !known:
			delete(k.tasks, a)
			ends = append(ends, func() { t.lose("its executor ended, and the task with it") })
		case f.Finished != nil:
			ends = append(ends, t.surprise(), func() { k.finish(&f) })
		default:
			ends = append(ends, t.surprise())
			k.remind(t, f.Suspended)
		}
	}
	if k.outdated {
		k.config.Log.Info("the executor has another build or configuration than this agent: the agent replaces the executor once no task runs", zap.Strings("in force", abilities[:2]))
		k.replace()
	}
	k.mu.Unlock()
	k.tell()
	for _, end := range ends {
		end()
	}
}

// remind sends again the orders that may not have reached the executor. The caller holds k.mu.
func (k *Client) remind(t *remote, suspended bool) {
	if t.suspended != suspended {
		k.send(&frame{Kind: suspend, Attempt: t.attempt, Suspended: t.suspended})
	}
	if t.stopped {
		k.send(&frame{Kind: stop, Attempt: t.attempt, Time: messages.Duration(t.grace)})
	}
}

// Notify calls f now, and whenever an executor ends, hangs, or is found. The argument of f says whether tasks can be
// started: an executor is connected and does not hang.
func (k *Client) Notify(f func(able bool)) {
	k.mu.Lock()
	k.notify = f
	k.mu.Unlock()
	k.tell()
}

// tell calls the function given to Notify, with true if there is an executor, and otherwise with false.
func (k *Client) tell() {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	f, able := k.notify, k.conn != nil && !k.still
	k.mu.Unlock()
	if f != nil {
		f(able)
	}
}

func (t *remote) lose(why string) {
	now := messages.TimeOf(time.Now())
	t.done(agent.Finished{Attempt: t.attempt, Outcome: agent.Stopped, Detail: why, Started: now, Ended: now})
}

// listen reads the messages of the executor, and finds another executor when the connection ends.
func (k *Client) listen(c *conn) {
	defer close(k.over)
	for c != nil {
		for {
			f, err := c.receive()
			if err != nil {
				break
			}
			k.hear(f)
		}
		c.finish()
		k.mu.Lock()
		k.conn = nil
		k.unanswered()
		closing := k.closing
		k.mu.Unlock()
		k.tell()
		if closing {
			k.loseHeld()
			return
		}
		k.config.Log.Warn("the executor is gone")
		c = k.again()
	}
}

// The method `again` connects to the executor again, and tries until it succeeds. It returns nil when the client is
// closed.
func (k *Client) again() *conn {
	waits := backoff.Backoff{First: 50 * time.Millisecond, Last: 5 * time.Second}
	for failures := 1; ; failures++ {
		c, err := k.connect(k.life)
		if err == nil {
			return c
		}
		k.config.Log.Error("no executor", zap.Error(err))
		select {
		case <-k.life.Done():
			return nil
		case <-time.After(waits.Bound(failures)):
		}
	}
}

// unanswered tells all callers that wait for an answer that none will come. The caller holds k.mu.
func (k *Client) unanswered() {
	for _, answer := range k.questions {
		answer <- &frame{Kind: reply, Error: messages.Errorf(messages.Unavailable, "the node's executor is gone; ask again")}
	}
	clear(k.questions)
}

func (k *Client) hear(f *frame) {
	switch f.Kind {
	case ended:
		k.finish(f)
	case withdrawn:
		k.mu.Lock()
		t := k.tasks[f.Attempt]
		delete(k.tasks, f.Attempt)
		k.mu.Unlock()
		if t != nil {
			t.giveBack()
		}
	case reply:
		k.mu.Lock()
		answer := k.questions[f.Number]
		delete(k.questions, f.Number)
		k.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

// finish reports the end of a task, and the start of the task that took its slot.
func (k *Client) finish(f *frame) {
	if f.Finished == nil {
		return
	}
	k.mu.Lock()
	t := k.tasks[f.Finished.Attempt]
	delete(k.tasks, f.Finished.Attempt)
	k.untold[f.Finished.Attempt] = true
	if earlier, waits := k.found[f.Finished.Attempt]; waits { // Adopt reports this end
		earlier.Finished = f.Finished
		k.found[f.Finished.Attempt] = earlier
	}
	var turned func(agent.Finished, time.Duration)
	if next := k.tasks[f.Attempt]; f.Kind == ended && next != nil {
		turned, next.turned = next.turned, nil
	}
	k.mu.Unlock()
	switch {
	case turned != nil:
		turned(*f.Finished, time.Duration(f.Number))
	case t != nil:
		t.done(*f.Finished)
	}
}

// send sends a frame. It returns false if there is no executor. The caller holds k.mu.
func (k *Client) send(f *frame) bool {
	if k.conn == nil {
		return false
	}
	k.conn.send(f)
	return true
}

// Start starts a task.
func (k *Client) Start(task runner.Task, done func(agent.Finished)) runner.Process {
	t := &remote{client: k, attempt: task.Attempt, done: done}
	k.mu.Lock()
	if k.replace(); k.handing && !k.closing {
		defer k.mu.Unlock()
		k.hold(task, t)
		return t
	}
	if k.closing || k.conn == nil {
		delete(k.tasks, task.Attempt) // the task waited for another task's slot
		k.mu.Unlock()
		t.lose("the node's executor is not there")
		return t
	}
	defer k.mu.Unlock()
	k.begin(start, task, t)
	return t
}

// begin sends a task to the executor, or keeps it for the next executor. The caller holds k.mu.
func (k *Client) begin(how kind, task runner.Task, t *remote) {
	k.tasks[task.Attempt] = t
	number := k.program(task.Program)
	k.conn.sendSoon(&frame{Kind: how, Attempt: task.Attempt, Array: task.Array, Position: task.Position, Nodes: task.Nodes, Steps: task.Steps, Number: number})
}

// Follow implements [runner.Lasting].
func (k *Client) Follow(task runner.Task, done func(agent.Finished), turned func(agent.Finished, time.Duration)) (runner.Follower, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing || k.handing || k.conn == nil || !k.follows {
		return nil, false
	}
	t := &remote{client: k, attempt: task.Attempt, done: done, turned: turned}
	k.begin(follow, task, t)
	return t, true
}

// Withdraw asks the executor not to start the waiting task. If no executor is connected, Withdraw sends nothing. The
// next executor that connects sends a list of its tasks, which shows whether this task has started.
func (t *remote) Withdraw() {
	k := t.client
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.turned != nil && k.conn != nil {
		k.conn.sendSoon(&frame{Kind: withdraw, Attempt: t.attempt}) // there are often several such frames: send them together
	}
}

func (t *remote) giveBack() {
	t.done(agent.Finished{Attempt: t.attempt, Outcome: agent.Stopped, Detail: "returned to the leader before it started"})
}

// The executor can start a task although the client did not expect it. surprise returns a function that reports this
// start. The client does not know which task had the slot before, so the report does not name that task. The caller
// holds the client's mu.
func (t *remote) surprise() func() {
	turned := t.turned
	t.turned = nil
	return func() {
		if turned != nil {
			turned(agent.Finished{}, boottime.Now())
		}
	}
}

// program sends a program to the executor, once, and returns its number. The caller holds k.mu.
func (k *Client) program(p *agent.Program) uint64 {
	if n, known := k.programs[p]; known {
		return n
	}
	if len(k.programs) == maxPrograms {
		clear(k.programs)
		k.send(&frame{Kind: program})
	}
	k.numbers++
	k.programs[p] = k.numbers
	k.send(&frame{Kind: program, Number: k.numbers, Program: p})
	return k.numbers
}

// Stop ends the task.
func (t *remote) Stop(grace time.Duration) {
	k := t.client
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.stopped {
		grace = min(grace, t.grace)
	}
	t.stopped, t.grace = true, grace
	k.send(&frame{Kind: stop, Attempt: t.attempt, Time: messages.Duration(grace)})
}

// Say sets the words of the task's last line.
func (t *remote) Say(last string) {
	k := t.client
	k.mu.Lock()
	defer k.mu.Unlock()
	k.send(&frame{Kind: say, Attempt: t.attempt, Name: last})
}

// Suspend suspends or resumes the task.
func (t *remote) Suspend(suspended bool) {
	k := t.client
	k.mu.Lock()
	defer k.mu.Unlock()
	t.suspended = suspended
	k.send(&frame{Kind: suspend, Attempt: t.attempt, Suspended: suspended})
}

// Adopt takes over the tasks that an earlier agent started. It calls done when one of them ends, perhaps before Adopt
// returns.
func (k *Client) Adopt(done func(agent.Finished)) (all []runner.Adopted) {
	k.mu.Lock()
	var over []*agent.Finished
	for a, f := range k.found {
		t := &remote{client: k, attempt: a, done: done, suspended: f.Suspended}
		k.tasks[a] = t
		all = append(all, runner.Adopted{Attempt: a, Class: f.Name, Width: int(f.Number), Suspended: f.Suspended, Process: t})
		if f.Finished != nil {
			over = append(over, f.Finished)
		}
	}
	k.found = nil
	k.mu.Unlock()
	for _, f := range over {
		k.finish(&frame{Finished: f})
	}
	return all
}

// Confirm tells the executor that it may drop a task that has ended.
func (k *Client) Confirm(a messages.Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.untold, a)
	if k.conn != nil { // not urgent: without this message, the next agent gets the end once more
		k.conn.sendLater(&frame{Kind: confirm, Attempt: a})
	}
	k.replace()
}

// Keep tells the executor when the lease ends. Tasks may run until then.
func (k *Client) Keep(until time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if runner.TellAnew(k.until, until) {
		k.until = until
		k.sendKeep()
	}
}

// sendKeep sends the executor the time for which tasks may still run. The caller holds k.mu.
func (k *Client) sendKeep() {
	k.send(&frame{Kind: keep, Number: uint64(max(k.until, 0)), Time: messages.Duration(max(k.until-boottime.Now(), 0))})
}

// Abilities returns the abilities of the executor.
func (k *Client) Abilities() []messages.Name {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.abilities)
	if k.outdated {
		all = append(all, agent.AbilityOutdated)
	}
	if k.still {
		all = append(all, agent.AbilityStalled)
	}
	return all
}

// closeWithin is a little longer than the time that the runner gives its tasks to end.
const closeWithin = 15 * time.Second

// Close kills the running tasks, waits until their ends are reported, and ends the executor.
func (k *Client) Close() error { return k.leave(&frame{Kind: end}) }

// Detach disconnects. The executor and its tasks go on, and another client can connect.
func (k *Client) Detach() error { return k.leave(nil) }

func (k *Client) leave(last *frame) error {
	k.mu.Lock()
	k.closing = true
	c := k.conn
	if last != nil {
		k.send(last)
	}
	k.mu.Unlock()
	k.die()
	if c != nil && last == nil {
		c.finish()
	}
	select {
	case <-k.over:
		return nil
	case <-time.After(closeWithin):
		return messages.Errorf(messages.Unavailable, "the executor does not end; see %s", k.config.log())
	}
}
