package batchqueue

import "slices"

// timeline is the number of free nodes over time, as a list. It is faster than a profile.Profile for short schedules in
// which jobs are only added, all searches start from time 0, and no nodes close.
type timeline struct {
	at   []float64 // breakpoints, the first at 0
	free []int32   // free nodes from each breakpoint to the next; all nodes are free after the last
	full int       // number of breakpoints at the beginning where no node is free
}

// mostListed is the maximum number of jobs for which a list of the free nodes over time (timeline) is faster than a
// tree (profile).
const mostListed = 512

func (l *timeline) reset(nodes int) {
	l.at, l.free, l.full = append(l.at[:0], 0), append(l.free[:0], int32(nodes)), 0
}

func (l *timeline) copy(from *timeline) {
	l.at, l.free, l.full = append(l.at[:0], from.at...), append(l.free[:0], from.free...), from.full
}

// place puts a job into the earliest window that it fits into, and returns when the window begins. The argument `nodes`
// must be at least 1 and at most the size of the machine.
func (l *timeline) place(length float64, nodes int) (start float64) {
	at, free, width := l.at, l.free[:len(l.at)], int32(nodes)
	first, next := l.full, 0
	var end float64
search:
	for {
		for free[first] < width {
			first++
		}
		start = at[first]
		end = start + length
		for next = first + 1; next < len(at) && at[next] < end; next++ {
			if free[next] < width {
				first = next + 1
				continue search
			}
		}
		break
	}
	if !(start < end) { // the length is 0, or so small that the sum did not change
		return start
	}
	if next == len(at) || at[next] != end {
		l.at, l.free = slices.Insert(l.at, next, end), slices.Insert(l.free, next, free[next-1])
	}
	for i := first; i < next; i++ {
		l.free[i] -= width
	}
	for l.free[l.full] == 0 {
		l.full++
	}
	return start
}

// timelines does the same as the type schedules, but keeps each of the two schedules as a list.
type timelines struct{ with, without timeline }

func newTimelines(q *Queue) *timelines {
	s := &timelines{}
	s.with.reset(q.Nodes)
	for _, r := range q.Running {
		s.with.place(r.Remaining, r.Width) // running jobs fit at the same time
	}
	s.without.copy(&s.with)
	return s
}

func (s *timelines) copy(from *timelines) {
	s.with.copy(&from.with)
	s.without.copy(&from.without)
}

func (s *timelines) insert(job Job, front bool) (with, without float64) {
	with = s.with.place(job.Length, job.Width)
	if front {
		return with, 0
	}
	return with, s.without.place(job.Length, job.Width)
}
