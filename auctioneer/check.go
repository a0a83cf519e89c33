package auctioneer

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// complete fills in what the spec leaves to the site, and checks it against
// the market.
func (l *leader) complete(spec *messages.JobSpec) error {
	if spec.Market == "" {
		spec.Market = l.Configs[0].Name
	}
	m := l.Find(spec.Market)
	if m == nil {
		return l.Missing("market: ", spec.Market)
	}
	if err := checkLimits(spec, m); err != nil {
		return err
	}
	for i := range spec.Stages {
		s := &spec.Stages[i]
		if s.Class == "" {
			s.Class = m.Classes[0]
		}
		if s.Name == "" {
			s.Name = fmt.Sprintf("stage%d", i)
		}
		s.TimeLimit = least(s.TimeLimit, m.TimeLimit)
		if market.MannerOf(m.Mechanism).Spans { // its slots go to others then
			s.TimeLimit = least(s.TimeLimit, spec.Length)
		}
		if !slices.Contains(m.Classes, s.Class) {
			return messages.Errorf(messages.NotFound, "stages[%d].class: market %s has no class %q; it has %v", i, m.Name, s.Class, m.Classes)
		}
		if most := l.MostMemory[s.Class]; most > 0 && s.Memory > most {
			return messages.Errorf(messages.TooLarge, "stages[%d].memory: %d MiB are more than the %d MiB that a task of class %s may have here", i, (s.Memory+1<<20-1)>>20, most>>20, s.Class)
		}
	}
	return checkUtility(spec, m)
}

// least is the smaller of two limits, of which 0 is none.
func least(a, b messages.Duration) messages.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// checkLimits refuses a job that the market's rules or slots have no room for.
func checkLimits(spec *messages.JobSpec, m *messages.Market) error {
	if n := spec.TaskCount(); m.MaxTasks > 0 && n > m.MaxTasks {
		return messages.Errorf(messages.TooLarge, "stages: market %s takes jobs of at most %d tasks, not of %d", m.Name, m.MaxTasks, n)
	}
	for i := range spec.Stages {
		if spec.Stages[i].Gang && !market.MannerOf(m.Mechanism).Gangs {
			return messages.Errorf(messages.Invalid, "stages[%d].gang: market %s starts tasks one by one and cannot keep a gang together; use a market of batch-queue, reservation or backfill", i, m.Name)
		}
	}
	return nil
}

// checkUtility sees to it that a job with work in a class also wants a share of it.
func checkUtility(spec *messages.JobSpec, m *messages.Market) error {
	if spec.Utility == nil {
		return nil
	}
	for _, w := range spec.Utility.Weights {
		if !slices.Contains(m.Classes, w.Class) {
			return messages.Errorf(messages.NotFound, "utility.weights: market %s has no class %q; it has %v", m.Name, w.Class, m.Classes)
		}
	}
	for i, s := range spec.Stages {
		if !(spec.Utility.Weights.Of(s.Class) > 0) {
			return messages.Errorf(messages.Invalid, "utility.weights: stage %s (stages[%d]) needs slots of class %s, but the utility gives that no weight; it would never get any",
				s.Name, i, s.Class)
		}
	}
	return nil
}

// takes checks a new job against the other jobs of the book.
func (l *leader) takes(b *book.Book, s *submission) error {
	for _, id := range slices.Concat(s.spec.AfterJobs, s.spec.AfterOK) {
		if _, err := l.visible(b, s.account, id); err != nil {
			return messages.Errorf(messages.KindOf(err), "after_jobs: %s", messages.AsError("", err).Message)
		}
	}
	if err := b.Dependable(s.spec); err != nil {
		return err
	}
	most := l.Find(s.spec.Market).MaxJobs
	if most == 0 {
		return nil
	}
	n := 0
	for _, id := range slices.Backward(b.Listed(s.account)) {
		if j := b.Job(id); j != nil && j.Spec.Market == s.spec.Market && j.Active() {
			if n++; n == most {
				break
			}
		}
	}
	if n >= most {
		return messages.Errorf(messages.Exhausted, "market %s takes at most %d jobs of an account at a time, and %s has %d that have not ended; wait for one", s.spec.Market, most, s.account, n)
	}
	return nil
}

// visible returns a job that the caller may see and cancel.
func (l *leader) visible(b *book.Book, caller messages.Name, id messages.JobID) (*book.Job, error) {
	j := b.Job(id)
	if r := b.Roam(id); r != nil && (r.Account == caller || slices.Contains(l.Operators, caller)) {
		return nil, messages.Errorf(messages.Invalid, "job %d runs at site %s; only jobs of this site can be named here", id, r.Peer)
	}
	if j == nil {
		return nil, messages.Errorf(messages.NotFound, "there is no job %d", id)
	}
	if j.Account != caller && !slices.Contains(l.Operators, caller) {
		return nil, messages.Errorf(messages.PermissionDenied, "job %d belongs to another account", id)
	}
	return j, nil
}
