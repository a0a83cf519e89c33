package memory

import (
	"time"

	"github.com/candor-grid/candor/estimator/internal/recent"
	"github.com/candor-grid/candor/estimator/runtime"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

const (
	// mostKinds is the largest number of kinds of job in the memory.
	mostKinds = 100_000
	// halfLife is the time after which a run has half of its weight.
	halfLife = messages.Duration(30 * 24 * time.Hour)
)

func checkProfiles(profiles []job.Profile) error {
	if len(profiles) > job.MaxProfiles {
		return messages.Errorf(messages.TooLarge, "profiles: %d is above the limit of %d", len(profiles), job.MaxProfiles)
	}
	names := map[messages.Name]bool{}
	for i := range profiles {
		p := &profiles[i]
		if err := p.Validate(); err != nil {
			return messages.Errorf(messages.KindOf(err), "profiles[%d].%s", i, messages.Detail(err))
		}
		if names[p.Name] {
			return messages.Errorf(messages.Invalid, "profiles[%d].name: there are two profiles %q", i, p.Name)
		}
		names[p.Name] = true
	}
	return nil
}

// Memory is what an estimator has learned. It is not safe for concurrent use.
type Memory struct {
	seen     map[messages.Name]*jobSet // by site: numbers of the observed jobs
	observed uint64                    // number of observed jobs
	kinds    *recent.Map[kind, *worth]
	paces    paces

	classes []*class // in the order of the configuration
}

// New returns an empty memory for a site's job profile classes.
func New(profiles []job.Profile) (*Memory, error) {
	if err := checkProfiles(profiles); err != nil {
		return nil, err
	}
	m := &Memory{paces: paces{tasks: runtime.New(taskGrain), waits: runtime.New(waitGrain), slots: runtime.New(slotGrain)}, seen: map[messages.Name]*jobSet{}, kinds: recent.New[kind, *worth](mostKinds)}
	for i := range profiles {
		class, err := newClass(&profiles[i])
		if err != nil {
			return nil, err
		}
		m.classes = append(m.classes, class)
	}
	return m, nil
}

// Observed returns the number of different jobs that the memory has learned from.
func (m *Memory) Observed() uint64 { return m.observed }

// Kinds returns the number of kinds of job in the memory.
func (m *Memory) Kinds() int { return m.kinds.Len() }

// Observe learns from an observation. The result `fresh` is false for a repeated job. An observation that no auctioneer
// would make is an error.
func (m *Memory) Observe(o *job.Observation) (fresh bool, err error) {
	if err := check(o); err != nil {
		return false, err
	}
	if !m.mark(o.Site, o.Job) {
		return false, nil
	}
	m.learnUtility(o)
	m.paces.learn(o)
	m.learnType(o)
	return true, nil
}

func check(o *job.Observation) error {
	switch {
	case !messages.ValidName(o.Site) || !messages.ValidOwner(o.Account):
		return messages.Errorf(messages.Invalid, "observation: has no valid site and account")
	case o.Job == 0:
		return messages.Errorf(messages.Invalid, "observation: has the job number 0")
	case len(o.Name) > job.MaxTextField:
		return messages.Errorf(messages.Invalid, "observation: the name of the job is too long")
	case !o.State.Final():
		return messages.Errorf(messages.Invalid, "observation: job %v has not ended, it is %v", o.Job, o.State)
	case len(o.Stages) > job.MaxStages || len(o.Work) > job.MaxStages || len(o.Shares) > job.MaxClasses:
		return messages.Errorf(messages.TooLarge, "observation: job %v has more stages or classes than a job can have", o.Job)
	}
	return nil
}
