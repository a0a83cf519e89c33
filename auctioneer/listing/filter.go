package listing

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are limits on one request to list jobs.
const (
	maxPattern = 128 // bytes in the pattern of a name
	maxLabels  = job.MaxLabels
)

// filter decides which jobs match a request.
type filter struct {
	*job.JobsRequest
	jobs   map[messages.JobID]bool // nil for all jobs
	states []job.State
	labels []job.LabelSelector
}

func newFilter(r *job.JobsRequest) (f filter, err error) {
	f.JobsRequest = r
	if len(r.Jobs) > job.MaxListed {
		return f, messages.Errorf(messages.TooLarge, "jobs: %d is above the limit of %d for one request; send several requests", len(r.Jobs), job.MaxListed)
	}
	if r.Jobs != nil {
		f.jobs = map[messages.JobID]bool{}
		for _, id := range r.Jobs {
			f.jobs[id] = true
		}
	}
	for _, name := range r.States {
		var s job.State
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return f, messages.Errorf(messages.Invalid, "states: %s", messages.Detail(err))
		}
		f.states = append(f.states, s)
	}
	if len(r.Name) > maxPattern {
		return f, messages.Errorf(messages.TooLarge, "name: the pattern has %d bytes, more than the limit of %d", len(r.Name), maxPattern)
	}
	if len(r.Labels) > maxLabels {
		return f, messages.Errorf(messages.TooLarge, "labels: %d is above the limit of %d", len(r.Labels), maxLabels)
	}
	for _, text := range r.Labels {
		selector, err := job.ParseLabelSelector(text)
		if err != nil {
			return f, messages.Errorf(messages.Invalid, "labels: %s", messages.Detail(err))
		}
		f.labels = append(f.labels, selector)
	}
	if r.Since != 0 && r.Until != 0 && r.Until <= r.Since {
		return f, messages.Errorf(messages.Invalid, "until: %v is not after since, %v", r.Until, r.Since)
	}
	return f, nil
}

// fits reports whether a job passes the whole filter.
func (f *filter) fits(j *job.JobSummary) bool {
	return !(f.Active && j.State.Final()) &&
		(f.jobs == nil || f.jobs[j.Job]) &&
		(f.Before == 0 || j.Job < f.Before) &&
		(f.states == nil || slices.Contains(f.states, j.State)) &&
		(f.Market == "" || j.Market == f.Market) &&
		(f.Project == "" || j.Payer == f.Project) &&
		(f.Since == 0 || j.Ended == 0 || j.Ended >= f.Since) &&
		(f.Until == 0 || j.Submitted < f.Until) &&
		j.Labels.Fit(f.labels) &&
		(f.Name == "" || matches(f.Name, j.Name))
}

// matches reports whether a name matches a pattern: * stands for any text, and ? for any one character. Taking the
// first occurrence of each part between two * is enough; no backtracking is needed.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	end := begins(name, first)
	if end < 0 {
		return false
	}
	if len(parts) == 1 {
		return end == len(name)
	}
	name = name[end:]
	for _, part := range parts[1 : len(parts)-1] {
		at, length := find(name, part)
		if at < 0 {
			return false
		}
		name = name[at+length:]
	}
	return ends(name, last)
}

// begins compares the beginning of a name with a part of a pattern that has no *. It returns the number of bytes of the
// name that match, or −1 if the beginning does not match.
func begins(name, part string) int {
	rest := name
	for _, want := range part {
		if rest == "" {
			return -1
		}
		got, size := nextRune(rest)
		if want != '?' && want != got {
			return -1
		}
		rest = rest[size:]
	}
	return len(name) - len(rest)
}

// find returns the position of the first match of a part without *, and its length in bytes.
func find(name, part string) (at, length int) {
	if !strings.Contains(part, "?") {
		return strings.Index(name, part), len(part)
	}
	for at := range name {
		if length := begins(name[at:], part); length >= 0 {
			return at, length
		}
	}
	return -1, 0
}

// A pattern is divided into parts at each *. ends reports whether a name ends with such a part. A ? in the part stands
// for any character.
func ends(name, part string) bool {
	if !strings.Contains(part, "?") {
		return strings.HasSuffix(name, part)
	}
	runes, wanted := []rune(name), []rune(part)
	if len(runes) < len(wanted) {
		return false
	}
	tail := string(runes[len(runes)-len(wanted):])
	return begins(tail, part) == len(tail)
}

func nextRune(s string) (r rune, size int) {
	for i, next := range s {
		if i > 0 {
			return r, i
		}
		r = next
	}
	return r, len(s)
}
