package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// To start ranks on another node, srun asks the agent of its own node. Its agent asks the leader, and the leader asks
// the agent of the other node. The agent of the other node starts this program there, next to the task that holds the
// slots. srun and the started program exchange JSON documents: first an awayPlan, then frames.

// ranksOfStep is the argument with which srun starts this program on another node.
const ranksOfStep = "--ranks-of-step"

type awayPlan struct {
	Path  string   `json:"path"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`
	Node  string   `json:"node"`
	At    int      `json:"at"`    // index of this node among the step's nodes
	Ranks []int    `json:"ranks"` // ranks on this node
	Total int      `json:"total"` // number of all ranks
	GPUs  []int    `json:"gpus"`
	Each  bool     `json:"each,omitempty"` // each rank gets its own GPUs
	PMI   string   `json:"pmi,omitempty"`  // the name of the step; "" means none
	Hears []bool   `json:"hears"`          // for each rank here: whether it reads srun's input
}

// frame is a message between srun and the program that runs ranks on another node. It carries an event of a rank to
// srun, or a signal or data from srun to the ranks.
type frame struct {
	Rank   int    `json:"rank,omitempty"`
	Out    []byte `json:"out,omitempty"`
	Err    []byte `json:"err,omitempty"`
	PMI    []byte `json:"pmi,omitempty"`  // bytes of PMI between a rank and the server
	Over   bool   `json:"over,omitempty"` // the rank has ended; Code and Fatal say how
	Code   int    `json:"code,omitempty"`
	Fatal  int    `json:"fatal,omitempty"`  // the signal that ended the rank
	Signal int    `json:"signal,omitempty"` // signal to send to all ranks
	In     []byte `json:"in,omitempty"`     // input for the ranks that read standard input
	InOver bool   `json:"in_over,omitempty"`
	Room   int    `json:"room,omitempty"` // srun may send this number of further bytes of input
	Deaf   bool   `json:"deaf,omitempty"` // the rank does not read the answers of PMI
}

// remote is srun's connection to the ranks on another node.
type remote struct {
	p      *place
	frames *frameQueue
	stop   context.CancelFunc
	giveUp context.CancelFunc // stops waiting for a node that has not begun its part of the job
	over   chan struct{}
}

func (r *remote) send(f frame) { r.frames.put(f) }

func (r *remote) close() {
	r.stop()
	<-r.over
}

// remoteInput sends the input of srun to the ranks on another node.
type remoteInput struct{ *remote }

func (i remoteInput) Write(b []byte) (int, error) {
	if len(b) > 0 {
		i.frames.await(len(b))
		i.send(frame{In: b})
	}
	return len(b), nil
}

func (i remoteInput) Close() error {
	i.send(frame{InOver: true})
	return nil
}

// remotePMI is the PMI server's connection to a rank on another node.
type remotePMI struct {
	*io.PipeReader
	r    *remote
	rank int
}

func (p remotePMI) Write(b []byte) (int, error) {
	p.r.send(frame{Rank: p.rank, PMI: slices.Clone(b)})
	return len(b), nil
}

// frameQueue is a queue of frames. A reader gets the frames as one stream of bytes. Adding a frame never blocks.
type frameQueue struct {
	mu    sync.Mutex
	more  *sync.Cond // signals every change
	bytes []byte
	ended bool
	// The field room is the number of bytes of input that the reader still takes. It counts only if told is set, because
	// a program of an earlier version does not say how much it takes.
	room int
	told bool
}

func newFrameQueue() *frameQueue {
	q := &frameQueue{}
	q.more = sync.NewCond(&q.mu)
	return q
}

func (q *frameQueue) put(f any) {
	data, err := json.Marshal(f)
	if err != nil {
		return
	}
	q.add(append(data, '\n'))
}

// add adds bytes to a queue. A queue that has ended takes no more.
func (q *frameQueue) add(data []byte) {
	q.mu.Lock()
	if !q.ended {
		q.bytes = append(q.bytes, data...)
	}
	q.mu.Unlock()
	q.more.Broadcast()
}

// mostQueued is the number of bytes in a queue above which await waits.
const mostQueued = 1 << 20

// await waits until the queue is short and its reader has room for n bytes of input, or until the queue has ended.
// Otherwise, input that no rank reads would fill the memory of srun, or of the node that runs the rank.
func (q *frameQueue) await(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.bytes) > mostQueued || q.told && q.room <= 0) && !q.ended {
		q.more.Wait()
	}
	q.room -= n
}

// short waits until the queue has at most this number of bytes, or has ended.
func (q *frameQueue) short(most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.bytes) > most && !q.ended {
		q.more.Wait()
	}
}

func (q *frameQueue) grant(n int) {
	q.mu.Lock()
	q.room, q.told = q.room+n, true
	q.mu.Unlock()
	q.more.Broadcast()
}

func (q *frameQueue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.more.Broadcast()
}

func (q *frameQueue) Read(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.bytes) == 0 && !q.ended {
		q.more.Wait()
	}
	if len(q.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(b, q.bytes)
	q.bytes = q.bytes[n:]
	q.more.Broadcast()
	return n, nil
}

func (c *call) ownAttempt() (a messages.Attempt, err error) {
	lease := c.Getenv("CANDOR_LEASE")
	if _, err := fmt.Sscanf(lease[strings.LastIndexByte(lease, ':')+1:], "%d.%d.%d.%d", &a.Task.Job, &a.Task.Stage, &a.Task.Index, &a.Number); err != nil {
		return a, fmt.Errorf("Unable to create step for job %s: CANDOR_LEASE does not name this attempt", c.Getenv("CANDOR_JOB"))
	}
	return a, nil
}

// members asks for the tasks of this process's allocation.
func (c *call) members(ctx context.Context) (*stepsBus, []agent.Member, error) {
	own, err := c.ownAttempt()
	if err != nil {
		return nil, nil, err
	}
	b := &stepsBus{own: own}
	parts := strings.Split(c.Getenv(agent.StepsVariable), ":")
	if len(parts) != 3 {
		return nil, nil, fmt.Errorf("Unable to create step for job %s: %s is not set, because this node cannot reach other nodes", c.Getenv("CANDOR_JOB"), agent.StepsVariable)
	}
	b.name, b.token = parts[0], parts[2]
	b.user, _ = strconv.Atoi(parts[1])
	reply, err := b.call(ctx, nil)
	return b, reply.Members, err
}

func (s *ranks) startAway(ctx context.Context, p *place) error {
	b, members, err := s.c.members(ctx)
	if err != nil {
		return err
	}
	if p.index >= len(members) {
		return s.c.tooMany()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	of := s.runs[p.of]
	dir := of.w.chdir
	if here, err := s.c.Workdir(); err == nil && !strings.HasPrefix(dir, "/") {
		dir = strings.TrimSuffix(here+"/"+dir, "/")
	}
	plan := awayPlan{Path: of.path, Argv: of.argv, Env: of.env, Dir: dir, Node: p.node, At: p.at, Ranks: p.ranks, Total: s.w.ranks, GPUs: p.gpus, Each: of.w.gpusPerRank != ""}
	stream := &jobs.Stream{App: s.c.App, Session: &cli.Session{Bus: b, Site: s.c.Getenv("CANDOR_SITE"), Account: "x"}, Node: p.node, Attempt: members[p.index].Attempt,
		Begin: &agent.StreamBegin{Command: []string{self, ranksOfStep}, Interactive: job.Interactive{Linger: lingerAway}}}
	stream.Comes = func(ctx context.Context) bool { // the other node may begin its part of the allocation later than this node
		_, err := b.call(ctx, nil)
		return err == nil || messages.KindOf(err).Retriable()
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	opening, giveUp := context.WithCancel(live)
	r := &remote{p: p, frames: newFrameQueue(), stop: stop, giveUp: giveUp, over: make(chan struct{})}
	pmi := map[int]*io.PipeWriter{}
	heard := false
	var closes []io.Closer
	for _, rank := range p.ranks {
		if s.pmi != nil {
			from, to := io.Pipe()
			pmi[rank] = to
			s.pmi.attach(rank, remotePMI{from, r, rank})
		}
		hears := s.w.hears(rank)
		heard = heard || hears
		plan.Hears = append(plan.Hears, hears)
		o := &s.outputs[rank]
		if o.out, err = s.output(rank, 1, &closes); err != nil {
			stop()
			return err
		}
		if o.errs, err = s.output(rank, 2, &closes); err != nil {
			stop()
			return err
		}
	}
	if s.pmi != nil {
		plan.PMI = s.pmi.name
	}
	if heard {
		s.inputs = append(s.inputs, remoteInput{r})
	}
	r.frames.put(plan)
	s.remote = append(s.remote, r)
	from, to := io.Pipe()
	stream.In, stream.Out, stream.Errs = r.frames, to, s.c.Err
	go s.follow(live, opening, stream, to, r)
	go s.hear(r, from, pmi)
	return nil
}

// lingerAway is how long ranks on another node continue to run after srun has ended or cannot be reached.
const lingerAway = messages.Duration(20 * time.Second)

// follow starts the ranks on another node, and passes on their input and output. The context `opening` ends with ctx, or
// earlier if the step ends before the node has begun.
func (s *ranks) follow(ctx, opening context.Context, stream *jobs.Stream, to *io.PipeWriter, r *remote) {
	defer close(r.over)
	at, err := stream.Open(opening)
	if err == nil {
		_, err = stream.Copy(ctx, at)
	}
	if err == nil {
		err = io.EOF
	}
	if opening.Err() != nil { // the node may have begun the ranks, although its answer did not come
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceOfStep)
		stream.Close(last)
		cancel()
	}
	r.frames.end()
	_ = to.CloseWithError(err)
}

// hear handles the frames that another node sends about its ranks. If the connection ends before the node has reported
// the end of a rank, the rank counts as lost.
func (s *ranks) hear(r *remote, from *io.PipeReader, pmi map[int]*io.PipeWriter) {
	left := map[int]bool{}
	for _, rank := range r.p.ranks {
		left[rank] = true
	}
	frames := json.NewDecoder(from)
	var err error
	for len(left) > 0 {
		var f frame
		if err = frames.Decode(&f); err != nil {
			break
		}
		if f.Room > 0 {
			r.frames.grant(f.Room)
		}
		if !left[f.Rank] {
			continue
		}
		if f.Deaf && s.pmi != nil {
			s.pmi.stop(pmiAbort{rank: f.Rank, code: 1, why: deafRank})
		}
		if len(f.Out) > 0 {
			_, _ = s.outputs[f.Rank].out.Write(f.Out)
		}
		if len(f.Err) > 0 {
			_, _ = s.outputs[f.Rank].errs.Write(f.Err)
		}
		if len(f.PMI) > 0 && pmi[f.Rank] != nil {
			_, _ = pmi[f.Rank].Write(f.PMI)
		}
		if f.Over {
			delete(left, f.Rank)
			s.ends <- rankEnd{rank: f.Rank, code: f.Code, signal: syscall.Signal(f.Fatal)}
		}
	}
	for rank := range left {
		s.ends <- rankEnd{rank: rank, code: 1, lost: "was not started, or its node was lost: " + cli.Sentence(err)}
	}
	for _, to := range pmi {
		_ = to.Close()
	}
	_, _ = io.Copy(io.Discard, from)
}

// close closes the files of a rank, but not srun's own outputs.
func (o rankOutput) close() {
	for _, f := range []*os.File{o.out, o.errs} {
		if f != nil && f != os.Stdout && f != os.Stderr {
			_ = f.Close()
		}
	}
}

// stepsBus sends a program's requests to the node's agent. With them, the program opens streams to other tasks of its
// allocation. The agent knows the program by a token.
type stepsBus struct {
	bus.Bus
	name, token string
	user        int // the system user that the agent runs as
	own         messages.Attempt
}

// call sends one request to the agent. If another program has taken the agent's socket, it sends nothing and returns an
// error.
func (b *stepsBus) call(ctx context.Context, stream *agent.StreamRequest) (reply agent.StepReply, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", "@"+b.name)
	if err != nil {
		return reply, messages.Errorf(messages.Unavailable, "the node's agent does not answer: %v", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if !b.genuine(conn) {
		return reply, messages.Errorf(messages.PermissionDenied, "another program answers in the place of the node's agent")
	}
	data, err := json.Marshal(agent.StepCall{Token: b.token, StepRequest: agent.StepRequest{Attempt: b.own, Stream: stream}})
	if err != nil {
		return reply, err
	}
	_, unsent := conn.Write(append(data, '\n')) // this error does not matter: an agent that refuses a request answers before it has read all of it
	var answer agent.StepAnswer
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return reply, messages.Errorf(messages.Unavailable, "the node's agent does not answer: %v", cmp.Or(unsent, err))
	}
	if answer.Error != "" {
		return reply, messages.Errorf(answer.Kind, "%s", answer.Error)
	}
	return answer.StepReply, nil
}

// genuine reports whether the listener on the socket runs as the same user as the agent.
func (b *stepsBus) genuine(conn net.Conn) (yes bool) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		yes = err == nil && int(peer.Uid) == b.user
	})
	return yes
}

// Request implements [bus.Bus], only for requests about streams.
func (b *stepsBus) Request(ctx context.Context, _ string, payload []byte) ([]byte, error) {
	var r agent.StreamRequest
	format := wire.Detect(payload, "")
	if err := wire.Unmarshal(payload, format, &r); err != nil {
		return nil, err
	}
	reply, err := b.call(ctx, &r)
	if err != nil {
		return nil, err
	}
	if reply.Stream == nil {
		return nil, messages.Errorf(messages.Internal, "the agent did not answer the request")
	}
	return wire.Marshal(reply.Stream, format)
}
