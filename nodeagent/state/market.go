package state

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// market has what the agent knows about one market: the latest vector of job weights, for the classes of this node.
type market struct {
	name      messages.Name
	ahead     bool // the market grants tasks in advance, before they have a slot
	term, seq uint64
	classes   []marketClass // in the order of the node's classes
	// early has changes of a vector that this node does not have yet. The changes wait until the complete vector comes.
	early    []*agent.Vector
	fetchAt  messages.Time // when to request the complete vector; 0 means no request is planned
	fetching bool
	failures int
}

type marketClass struct {
	served        bool // the market serves the class
	pending, idle int
	// rest is the number of tasks in the vector that remain after each idle slot has got one. These tasks are left for
	// slots that become free later.
	rest int
	// dry is true if a claim found no more work, although the vector still named jobs with work. Then no slot claims
	// again before the next vector.
	dry  bool
	jobs sampler.Stride
	// claimed is true if the node has sent claims that were drawn from this vector, and has no answer yet.
	claimed           bool
	sentTerm, sentSeq uint64
}

// maxEarly is the largest number of changes that the agent keeps while it waits for a vector. Each of these changes
// builds on an earlier vector that the agent does not have yet.
const maxEarly = 64

func (m *market) newer(v *agent.Vector) bool {
	return v.Term > m.term || v.Term == m.term && v.Seq > m.seq
}

// follows reports whether a vector can be used now: it is complete, or it is a change of the present vector.
func (m *market) follows(v *agent.Vector) bool {
	return v.Base == 0 || v.Term == m.term && v.Base == m.seq
}

// wait keeps a change for which this node does not have the earlier vector yet. If maxEarly changes are kept already,
// wait drops the oldest.
func (m *market) wait(v *agent.Vector) {
	if len(m.early) == maxEarly {
		m.early = m.early[1:]
	}
	m.early = append(m.early, v)
}

// update brings the class up to date with the vector's part about it, v. If whole is true, v replaces all data of the
// class. Otherwise v is a change, which update applies. v is nil if the vector has no part about this class; then
// update acts as if v were zero.
func (c *marketClass) update(v *agent.ClassVector, whole bool) error {
	if v == nil {
		v = &agent.ClassVector{}
	}
	c.pending, c.idle, c.dry = v.Pending, v.Idle, false
	if whole {
		return c.jobs.Replace(v.Jobs)
	}
	return c.jobs.Update(v.Jobs)
}

// This method returns how many claims all idle slots of all nodes should make together. This is somewhat more than the
// number of pending tasks, because each slot decides at random whether it makes a claim.
func (c *marketClass) wanted() float64 {
	p := float64(c.pending)
	return p + 2*math.Sqrt(p) + 3
}

// share computes c.rest: the number of pending tasks that remain after each idle slot has claimed one. The argument
// `own` is the number of idle slots of this node.
func (c *marketClass) share(own int) {
	claims := min(float64(max(c.idle, own)), c.wanted())
	c.rest = max(0, c.pending-int(claims))
}

// work returns the number of pending tasks, as far as the agent knows. It returns 0 if the last claim got no task.
func (c *marketClass) work() int {
	if c.dry || c.jobs.Len() == 0 {
		return 0
	}
	return max(0, c.pending)
}

func classOf(v *agent.Vector, name messages.Name) *agent.ClassVector {
	for i := range v.Classes {
		if v.Classes[i].Class == name {
			return &v.Classes[i]
		}
	}
	return nil
}
