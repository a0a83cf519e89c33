package listing

import (
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

const (
	defaultLimit = 100
	// MostLimit is the maximum number of jobs in an answer.
	MostLimit = 1000
	// mostText is the maximum size, in bytes, of all names and labels in an answer together. When this size is reached,
	// no more jobs are added, so only the last job can exceed it.
	mostText = 1 << 20
	// mostKey is how many bytes of a text are compared when jobs are sorted.
	mostKey = 64
)

// A Page collects the jobs of one answer, such as the first 100 jobs in the requested order.
type Page struct {
	filter
	limit   int
	by      string
	reverse bool // largest first
	after   *place
	found   []place
}

// A list of jobs is sorted by a number or by a text of each job. place has this number or this text for one job. Of two
// jobs with the same value, the newer one comes first.
type place struct {
	number int64
	text   string
	job    messages.JobID
	// archived is the job, if it comes from the archive, or nil.
	archived *job.JobSummary
}

// New returns the empty page for a request.
func New(r *job.JobsRequest) (p *Page, err error) {
	if r.Limit < 0 || r.Limit > MostLimit {
		return nil, messages.Errorf(messages.TooLarge, "limit: must be between 1 and %d, or 0 for %d", MostLimit, defaultLimit)
	}
	p = &Page{limit: cmp.Or(r.Limit, defaultLimit)}
	p.by, p.reverse = strings.CutPrefix(cmp.Or(r.Sort, "-job"), "-")
	if !slices.Contains(job.JobSortings, p.by) {
		return nil, messages.Errorf(messages.Invalid, "sort: jobs cannot be sorted by %q; use one of %s; write - before the word to list the largest first",
			messages.Clip(p.by, mostKey), strings.Join(job.JobSortings, ", "))
	}
	if r.After != "" {
		if p.after, err = readPlace(r.After); err != nil {
			return nil, err
		}
	}
	p.filter, err = newFilter(r)
	return p, err
}

// Add adds a job to the page, if it matches the request. The caller adds the newest jobs first. Add returns true if the
// page needs no more jobs.
func (p *Page) Add(j *job.JobSummary) (full bool) {
	if !p.fits(j) {
		return false
	}
	at := p.place(j)
	if p.after != nil && p.compare(at, *p.after) <= 0 {
		return false
	}
	p.enter(at)
	return p.newestFirst() && len(p.found) > p.limit
}

func (p *Page) enter(at place) {
	p.found = append(p.found, at)
	if len(p.found) > 4*p.limit+64 {
		p.cut()
	}
}

// AddArchived adds a job of the archive. The jobs of the archive may be added in any order, but only after all other
// jobs.
func (p *Page) AddArchived(j *job.JobSummary) {
	if !p.fits(j) {
		return
	}
	if at := p.place(j); p.after == nil || p.compare(at, *p.after) > 0 {
		at.archived = j
		p.enter(at)
	}
}

// Wants reports whether jobs of an archive file can be on the page. The file has the jobs with numbers from `oldest` to
// `newest`. The first of them was submitted at `submitted`, and the last ended at `ended`.
func (p *Page) Wants(oldest, newest messages.JobID, submitted, ended messages.Time) bool {
	if p.jobs != nil && !slices.ContainsFunc(p.Jobs, func(id messages.JobID) bool { return id >= oldest && id <= newest }) {
		return false
	}
	if p.Active || p.Before != 0 && oldest >= p.Before || p.Since != 0 && ended < p.Since || p.Until != 0 && submitted >= p.Until {
		return false
	}
	if !p.newestFirst() {
		return true
	}
	if p.after != nil && oldest >= p.after.job {
		return false
	}
	p.cut()
	return len(p.found) <= p.limit || p.found[p.limit].job < newest
}

// Names reports whether the job with this number can be on the page. If the request names job numbers, only these jobs
// can.
func (p *Page) Names(id messages.JobID) bool { return p.jobs == nil || p.jobs[id] }

// Lists reports whether the answer can have jobs in a state.
func (p *Page) Lists(s job.State) bool { return p.states == nil || slices.Contains(p.states, s) }

// newestFirst reports whether the answer has the newest job first. The caller calls Add in this order, so the jobs need
// not be sorted.
func (p *Page) newestFirst() bool { return p.by == "job" && p.reverse }

// cut sorts the found jobs, and removes jobs that cannot be in the page. It keeps one more job, which shows that there
// is a next page. It also removes duplicates: a job that was archived during the search may have been found in the book
// and in the archive.
func (p *Page) cut() {
	slices.SortFunc(p.found, p.compare)
	p.found = slices.CompactFunc(p.found, func(a, b place) bool { return a.job == b.job })
	p.found = p.found[:min(len(p.found), p.limit+1)]
}

// Reply returns the answer, with the present state of its jobs. A job for which `summary` returns false is left out.
func (p *Page) Reply(summary func(messages.JobID) (job.JobSummary, bool)) (r job.JobsReply) {
	p.cut()
	text := 0
	for i, at := range p.found {
		if r.More = len(r.Jobs) == p.limit || text >= mostText; r.More {
			r.Next = p.found[i-1].String()
			break
		}
		j, ok := job.JobSummary{}, at.archived != nil
		if ok {
			j = *at.archived
		} else {
			j, ok = summary(at.job)
		}
		if ok {
			r.Jobs = append(r.Jobs, j)
			text += len(j.Name) + len(j.Labels.String())
		}
	}
	return r
}

// place returns the position of a job in the requested order.
func (p *Page) place(j *job.JobSummary) place {
	at := place{job: j.Job}
	switch p.by {
	case "job":
		at.number = int64(min(j.Job, math.MaxInt64))
	case "name":
		at.text = messages.Clip(j.Name, mostKey)
	case "account":
		at.text = messages.Clip(j.Account, mostKey)
	case "market":
		at.text = messages.Clip(j.Market, mostKey)
	case "state":
		at.number = int64(j.State)
	case "budget":
		at.number = int64(j.Budget)
	case "charged":
		at.number = int64(j.Charged)
	case "tasks":
		at.number = int64(j.Tasks)
	case "submitted":
		at.number = int64(j.Submitted)
	case "started":
		at.number = int64(j.Started)
	case "ended":
		at.number = int64(j.Ended)
	}
	return at
}

func (p *Page) compare(a, b place) int {
	c := cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
	if p.reverse {
		c = -c
	}
	return cmp.Or(c, cmp.Compare(b.job, a.job))
}

// String returns a place as text that readPlace can read.
func (at place) String() string {
	return strconv.FormatUint(uint64(at.job), 10) + "." + strconv.FormatInt(at.number, 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(at.text))
}

func readPlace(s string) (*place, error) {
	parts := strings.Split(messages.Clip(s, 4*mostKey), ".")
	if len(parts) == 3 {
		job, err1 := strconv.ParseUint(parts[0], 10, 64)
		number, err2 := strconv.ParseInt(parts[1], 10, 64)
		text, err3 := base64.RawURLEncoding.DecodeString(parts[2])
		if err1 == nil && err2 == nil && err3 == nil {
			return &place{number: number, text: string(text), job: messages.JobID(job)}, nil
		}
	}
	return nil, messages.Errorf(messages.Invalid, "after: %q is not from an earlier answer; give the value of \"next\" in the earlier answer", messages.Clip(s, mostKey))
}
