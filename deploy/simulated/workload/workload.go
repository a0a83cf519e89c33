package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// Parallel says how jobs of several processors are run.
type Parallel string

// These values say what becomes of a parallel job of the log:
const (
	Gang  Parallel = "gang"  // all slots of a job together, from the start to the end
	Split Parallel = "split" // one serial task for each processor
	Leave Parallel = "skip"  // the job is left out, and counted
	Wide  Parallel = "wide"  // one task on 1, 2, 4 or 8 slots of a node of [NodeSlots] slots
)

const (
	// NodeSlots is the number of slots of each node on which wide tasks run. It is also the largest width of a task.
	NodeSlots = 8
	// MostNodes is the largest number of slots of a machine or a job. It is above the largest real machines.
	MostNodes = 1 << 24
	// MostTime is the latest submission and the longest run time of a record, in seconds. It is more than a century.
	MostTime = 4e9
	// mostSpan is the longest possible duration of a study, in seconds. Its microseconds are counted in 64 bits.
	mostSpan = 4e12
)

// Unknown is the position for users and groups that the log does not name.
const Unknown = -1

// Options say what to take from a log.
type Options struct {
	Nodes    int     // number of slots of the machine; 0 means the number in the log
	From, To float64 // only submissions from From up to To (exclusive), in seconds; 0 in To means no end
	Load     float64 // factor by which the load is changed; 0 means 1
	Parallel Parallel
	SkipBad  bool
}

// Job is one job of the log, as the study runs it.
type Job struct {
	Number  int64 // number in the log
	Line    int   // line of the log
	Submit  float64
	Runtime float64
	Asked   float64 // requested run time; 0 means unknown
	Width   int     // number of slots, or of serial tasks
	User    int     // position in Workload.Users
	Group   int     // position in Workload.Groups
	Queue   int64   // queue in the log; -1 means unknown
}

// Work returns the slot-seconds that a job takes.
func (j *Job) Work() float64 { return j.Runtime * float64(j.Width) }

// Workload has the jobs to run and the size of the machine.
type Workload struct {
	Nodes    int
	Parallel Parallel
	Jobs     []Job
	Users    []int64 // the numbers of the users in the log; Unknown for users without a number
	Groups   []int64
	Skipped  Skipped
	Notes    []string // remarks for readers of the results
}

// Skipped counts the records that were left out, by reason.
type Skipped struct {
	Outside  int `json:"outside"`   // not submitted during the time studied
	NoSubmit int `json:"no_submit"` // unknown submission
	NoLength int `json:"no_runtime"`
	NoWidth  int `json:"no_processors"`
	Parallel int `json:"parallel"` // left out because the options ask for it
	Bad      int `json:"bad"`      // lines and records with errors
}

// Total returns the number of records that were left out.
func (s *Skipped) Total() int {
	return s.Outside + s.NoSubmit + s.NoLength + s.NoWidth + s.Parallel + s.Bad
}

// New makes the workload of a log.
func New(log *swf.Log, o Options) (*Workload, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Workload{Parallel: o.Parallel}
	w.Skipped.Bad = log.Bad.Lines
	if log.Bad.First != nil {
		w.note("lines with mistakes were left out: %d; the first one: %v", log.Bad.Lines, log.Bad.First)
	}
	if log.Bad.Cut {
		w.note("the log is cut off: the part after its last line is missing")
	}
	b := builder{Workload: w, options: o, users: map[int64]int{}, groups: map[int64]int{}}
	if err := b.machine(log); err != nil {
		return nil, err
	}
	for i := range log.Jobs {
		if err := b.add(&log.Jobs[i]); err != nil {
			return nil, err
		}
	}
	if len(w.Jobs) == 0 {
		return nil, messages.Errorf(messages.Invalid, "no job of the log can be run: of %d records, %d are outside of the time studied, %d have no time of submission, %d have no run time, %d have no processors, %d are parallel, and %d have mistakes%s",
			len(log.Jobs)+log.Bad.Lines, w.Skipped.Outside, w.Skipped.NoSubmit, w.Skipped.NoLength, w.Skipped.NoWidth, w.Skipped.Parallel, w.Skipped.Bad, b.outside(log))
	}
	b.oddities()
	return w, b.arrange()
}

// oddities adds notes about unusual jobs that are no errors: repeated numbers, and submissions out of order.
func (b *builder) oddities() {
	back := 0
	for i := 1; i < len(b.Jobs); i++ {
		if b.Jobs[i].Submit < b.Jobs[i-1].Submit {
			back++
		}
	}
	if back > 0 {
		b.note("%s earlier than the previous job of the file: the study orders jobs by their submission, not by the file", spelling.Number(back, "job was submitted", "jobs were submitted"))
	}
	byNumber := make([]*Job, len(b.Jobs))
	for i := range b.Jobs {
		byNumber[i] = &b.Jobs[i]
	}
	ascending := func(x, y *Job) int { return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(x.Line, y.Line)) }
	if !slices.IsSortedFunc(byNumber, ascending) {
		slices.SortFunc(byNumber, ascending)
	}
	again, first, second := 0, (*Job)(nil), (*Job)(nil)
	for i := 1; i < len(byNumber); i++ {
		if byNumber[i].Number == byNumber[i-1].Number {
			if again++; second == nil || byNumber[i].Line < second.Line {
				first, second = byNumber[i-1], byNumber[i]
			}
		}
	}
	if again > 0 {
		b.note("%s the job number of an earlier record, such as line %d with number %d of line %d: each record counts as a job of its own", spelling.Number(again, "record has", "records have"), second.Line, second.Number, first.Line)
	}
}

// outside says when the log's jobs were submitted, if none of them is in the time of the study.
func (b *builder) outside(log *swf.Log) string {
	if b.Skipped.Outside == 0 {
		return ""
	}
	first, last := int64(MostTime), int64(0)
	for i := range log.Jobs {
		if at := log.Jobs[i].Submit; at >= 0 {
			first, last = min(first, at), max(last, at)
		}
	}
	return fmt.Sprintf("; submissions are from %d s to %d s, %.4g to %.4g days, after the log's beginning", first, last, float64(first)/86400, float64(last)/86400)
}

func (o *Options) check() error {
	switch {
	case o.Nodes < 0 || o.Nodes > MostNodes:
		return messages.Errorf(messages.Invalid, "nodes: must be from 1 to %d, is %d", MostNodes, o.Nodes)
	case o.Load == 0:
		o.Load = 1
	case !(o.Load >= 1e-6 && o.Load <= 1e6):
		return messages.Errorf(messages.Invalid, "load: must be from 0.000001 to 1000000, is %v", o.Load)
	}
	if o.From < 0 || o.To < 0 || o.To != 0 && o.To <= o.From {
		return messages.Errorf(messages.Invalid, "from, to: neither may be negative, and to must be later than from; from is %v s, to is %v s", o.From, o.To)
	}
	switch o.Parallel {
	case Gang, Split, Leave, Wide:
		return nil
	}
	return messages.Errorf(messages.Invalid, "parallel: must be %s, %s, %s or %s, is %.64q", Gang, Split, Leave, Wide, string(o.Parallel))
}

// arrange sorts the jobs by submission. If the options ask for another load, it changes the times between submissions:
// they become shorter for a higher load.
func (b *builder) arrange() error {
	slices.SortStableFunc(b.Jobs, func(x, y Job) int { return cmp.Compare(x.Submit, y.Submit) })
	if x := b.options.Load; x != 1 {
		first := b.Jobs[0].Submit
		for i := range b.Jobs {
			b.Jobs[i].Submit = math.Round((first+(b.Jobs[i].Submit-first)/x)*1000) / 1000
		}
	}
	_, last := b.Span()
	for i := range b.Jobs {
		j := &b.Jobs[i]
		if last += j.Runtime * math.Ceil(float64(j.Width)/float64(b.Nodes)); last > mostSpan {
			return messages.Errorf(messages.TooLarge, "line %d: job %d: the jobs up to this one can take %.3g s, and the limit of a study is %.3g s: study a shorter time, or use a larger load", j.Line, j.Number, last, float64(mostSpan))
		}
	}
	return nil
}

// Span returns the times of the first and the last submission.
func (w *Workload) Span() (first, last float64) {
	return w.Jobs[0].Submit, w.Jobs[len(w.Jobs)-1].Submit
}

// Widest returns the largest number of slots that a job needs, and the number of tasks of all jobs.
func (w *Workload) Widest() (widest, tasks int) {
	for i := range w.Jobs {
		widest = max(widest, w.Jobs[i].Width)
		tasks += w.Jobs[i].Width
	}
	return widest, tasks
}
