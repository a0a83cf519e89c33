package market

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// The answer to an exchange is limited before anything is committed. An answer that is too large would be refused at
// each repetition, until the node has lost its lease. An attempt takes at most 26 bytes and a grant 41. So these parts
// take at most half of wire.MaxPayload; the other half is for the node's markets.
const (
	// MostClaims is the maximum number of claims that a node may have. All of them may be suspended.
	MostClaims = 1 << 15
	// MostStops is the maximum number of attempts that one message tells a node to end.
	MostStops    = 1 << 15
	mostGrants   = 1 << 14 // grants for one exchange
	mostPrograms = 2 << 20 // bytes of the programs of these grants
	// MostRequests is the maximum number of claims that the leader reads from one exchange. It ignores further claims.
	MostRequests = 1 << 10
	overhead     = 512 // bytes of a program, not counting its texts
	perText      = 8   // bytes of a text, not counting its characters
	perFile      = 64  // bytes of a file, not counting its name and digest
)

// CutToReply shortens a list of claims so that the answer to an exchange does not become too large. After the next
// vector, the node claims again what was cut off.
func CutToReply(b *book.Book, node messages.Name, claims []book.Claim) []book.Claim {
	n := b.Node(node)
	if n == nil {
		return nil
	}
	r := room{bytes: mostPrograms, slots: min(mostGrants, MostClaims-len(n.Claims)), shares: sharesEnv(n), seen: map[classOf]int{}}
	out := make([]book.Claim, 0, len(claims))
	for i := range claims {
		out = r.fit(b, &claims[i], out)
	}
	return out
}

// room is the space that is left in the answer to a node's exchange, in bytes and in slots.
type room struct {
	bytes, slots int
	shares       bool            // the node gets the environment of a job once, for all programs of the job
	seen         map[classOf]int // by job and class: number of slots that were claimed
}

type classOf struct {
	job   messages.JobID
	class messages.Name
}

// fit appends a claim to `out`, if the answer to the node has space for the tasks of the claim. Usually the whole claim
// fits. If only some stages of a job fit, the claim is reduced to the slots that these stages can use.
func (r *room) fit(b *book.Book, c *book.Claim, out []book.Claim) []book.Claim {
	whole := book.Claim{Class: c.Class, Slots: min(c.Slots, r.slots), Ahead: c.Ahead, Fits: c.Fits, Lent: c.Lent}
	for at, id := range c.Jobs {
		j := b.Job(id)
		if j == nil || whole.Slots <= 0 {
			continue
		}
		slots, size := r.most(j, c.Class, whole.Slots)
		if slots == 0 {
			continue
		}
		r.bytes -= size
		r.seen[classOf{id, c.Class}] += slots
		if slots < whole.Slots {
			part := book.Claim{Class: c.Class, Slots: slots, Jobs: []messages.JobID{id}, Ahead: c.Ahead, Fits: c.Fits, Lent: c.Lent}
			if at < len(c.Most) {
				part.Most = []int{c.Most[at]}
			}
			out, r.slots, whole.Slots = append(out, part), r.slots-slots, whole.Slots-slots
			continue
		}
		whole.Jobs = append(whole.Jobs, id)
		if at < len(c.Most) {
			whole.Most = append(whole.Most, c.Most[at])
		}
	}
	if len(whole.Jobs) > 0 {
		out, r.slots = append(out, whole), r.slots-whole.Slots
	}
	return out
}

// An answer to a claim has a limited size, and it carries the programs of the granted tasks. The method `most` returns
// how many slots of a job can be granted before the answer is full, but not more than `slots`. The stage of each slot
// is not known yet, so `most` assumes the largest programs. It also returns the size of the programs in bytes.
func (r *room) most(j *book.Job, class messages.Name, slots int) (fit, size int) {
	sizes := programSizes(j, class, r.shares)
	before := r.seen[classOf{j.ID, class}]
	if before == 0 && r.shares {
		size = envSize(j.Spec.Env) + overhead
	}
	for k := before; k < min(before+slots, len(sizes)); k++ {
		if size+sizes[k] > r.bytes {
			return k - before, size
		}
		size += sizes[k]
	}
	if size > r.bytes {
		return 0, 0
	}
	return slots, size
}

// programSizes returns upper bounds on the sizes of a job's programs of a class, largest first.
func programSizes(j *book.Job, class messages.Name, shared bool) (out []int) {
	for i := range j.Spec.Stages {
		if s := &j.Spec.Stages[i]; s.Class == class {
			out = append(out, programSize(j, s, shared))
		}
	}
	slices.SortFunc(out, func(a, b int) int { return b - a })
	return out
}

// programSize returns an upper bound on the size of a stage's program, in bytes.
func programSize(j *book.Job, s *job.Stage, shared bool) int {
	n := overhead + len(s.Name) + len(j.Spec.Name) + len(j.Account) + len(j.Payer) + len(j.Spec.Market) + len(s.Class) + len(s.Script) + len(j.Spec.Dir) + envSize(s.Env)
	if !shared {
		n += envSize(j.Spec.Env)
	}
	for _, argument := range s.Command {
		n += len(argument) + perText
	}
	for _, f := range s.Inputs {
		n += len(f.Name) + len(f.Digest) + perFile
	}
	for _, pattern := range s.Outputs {
		n += len(pattern) + perText
	}
	return n
}

func envSize(e job.Env) (n int) {
	for _, v := range e {
		n += len(v.Name) + len(v.Value) + 2*perText
	}
	return n
}

func sharesEnv(n *book.Node) bool { return slices.Contains(n.Abilities, agentmsg.AbilitySharedEnv) }

// Programs returns the programs of granted tasks, one for each stage. The size of the answer is limited. If a program
// does not fit into it, the program is left out, and its tasks count as stopped before they began. Programs that
// [CutToReply] has allowed always fit.
func Programs(b *book.Book, node messages.Name, grants []agentmsg.Grant) (out []agentmsg.Program) {
	left := mostPrograms
	n := b.Node(node)
	shares := n != nil && sharesEnv(n)
	type stage struct {
		job messages.JobID
		at  uint32
	}
	seen := map[stage]bool{}
	for _, g := range grants {
		r := g.Attempt.Task
		if r.Job == 0 && n != nil { // this is a probe: its small program always fits
			out = append(out, book.ProbeProgram(n.ProbeClass()))
			continue
		}
		j := b.Job(r.Job)
		if j == nil || seen[stage{r.Job, r.Stage}] {
			continue
		}
		if common := (stage{r.Job, agentmsg.SharedEnv}); shares && len(j.Spec.Env) > 0 && !seen[common] {
			if left -= envSize(j.Spec.Env) + overhead; left < 0 {
				return out
			}
			out = append(out, agentmsg.Program{Job: j.ID, Stage: agentmsg.SharedEnv, Env: j.Spec.Env})
			seen[common] = true
		}
		s := &j.Spec.Stages[r.Stage]
		if left -= programSize(j, s, shares); left < 0 {
			return out
		}
		seen[stage{r.Job, r.Stage}] = true
		out = append(out, program(j, r.Stage, shares))
	}
	return out
}

// holding is the command of tasks that only hold their slots.
var holding = []string{"/bin/sh", "-c", "exec sleep infinity"}

func program(j *book.Job, at uint32, shared bool) agentmsg.Program {
	s := &j.Spec.Stages[at]
	p := agentmsg.Program{
		Job: j.ID, Stage: at, StageName: s.Name, JobName: j.Spec.Name, Account: j.Account, Payer: j.Payer, Market: j.Spec.Market, Class: s.Class,
		Tasks: s.TaskCount(), Command: s.Command, Script: s.Script, Env: j.Spec.Env, Dir: j.Spec.Dir, TimeLimit: s.TimeLimit, Memory: s.Memory,
		Width: s.Width, Exclusive: s.Exclusive, Allocation: s.Allocation,
		Inputs: s.Inputs, Outputs: s.Outputs, Interactive: s.Interactive, Signal: s.Signal, Umask: j.Spec.Umask, OOM: s.OOM,
	}
	if s.Width > 0 { // only classes with a defined slot size have widths
		shape := s.Needs()
		p.Shape = &shape
	}
	if at > 0 && j.Spec.Together { // the other tasks only hold their slots for the first task of the job
		p.Command, p.Script = holding, ""
	}
	if s.Repeats != nil {
		p.Tasks = s.Repeats.Tasks
	}
	if shared {
		p.Env = nil
	}
	p.Env = p.Env.Overlaid(s.Env)
	if j.Visit != nil { // the program needs the job's number at its home site, which differs from the number here
		p.Env = p.Env.Overlaid(job.Env{{Name: "CANDOR_HOME_JOB", Value: j.Visit.Visit.String()}})
	}
	return p
}
