package demo

import (
	"fmt"
	"math/bits"
	"slices"
)

func answerRuntimes(jobs []logJob) string {
	out := "runtime_from jobs\n"
	bins, of := groupBy(jobs, func(j logJob) int64 {
		if j.run == 0 {
			return 0
		}
		return 1 << (bits.Len64(uint64(j.run)) - 1)
	})
	for _, b := range bins {
		out += fmt.Sprintln(b, len(of[b]))
	}
	runs := values(jobs, runOf)
	for _, q := range []struct {
		name     string
		permille int
	}{{"p10", 100}, {"p50", 500}, {"p90", 900}, {"p99", 990}, {"max", 1000}} {
		out += fmt.Sprintln("quantile", q.name, nearestRank(runs, q.permille))
	}
	return out
}

func answerWaits(jobs []logJob) string {
	out := "widest jobs mean median p90 p99 max\n"
	widths, of := groupBy(jobs, func(j logJob) int64 { return 1 << bits.Len64(uint64(j.procs-1)) })
	for _, w := range widths {
		v := values(of[w], waitOf)
		out += fmt.Sprintln(w, len(v), half(total(v), int64(len(v))),
			nearestRank(v, 500), nearestRank(v, 900), nearestRank(v, 990), v[len(v)-1])
	}
	return out
}

func answerSlowdown(jobs []logJob) string {
	out := "queue jobs mean median p90 p99\n"
	queues, of := groupBy(jobs, func(j logJob) int64 { return j.queue })
	for _, q := range queues {
		v := values(of[q], func(j logJob) int64 { return max(1000, (j.wait+j.run)*1000/max(j.run, 10)) })
		out += fmt.Sprintln(q, len(v), half(total(v), int64(len(v))),
			nearestRank(v, 500), nearestRank(v, 900), nearestRank(v, 990))
	}
	return out
}

func answerEstimates(jobs []logJob) string {
	out := "used_percent jobs asked_median asked_p90\n"
	jobs = slices.DeleteFunc(jobs, func(j logJob) bool { return j.asked <= 0 })
	parts, of := groupBy(jobs, func(j logJob) int64 { return min(20, j.run*20/j.asked) })
	for _, p := range parts {
		v := values(of[p], askedOf)
		out += fmt.Sprintln(5*p, len(v), nearestRank(v, 500), nearestRank(v, 900))
	}
	return out
}

func answerPrograms(jobs []logJob) string {
	out := "program runs p25 median p75\n"
	jobs = slices.DeleteFunc(jobs, func(j logJob) bool { return j.program < 0 })
	programs, of := groupBy(jobs, func(j logJob) int64 { return j.program })
	for _, p := range programs {
		if v := values(of[p], runOf); len(v) >= 100 {
			out += fmt.Sprintln(p, len(v), nearestRank(v, 250), nearestRank(v, 500), nearestRank(v, 750))
		}
	}
	return out
}

func answerPredict(jobs []logJob) string {
	closeness := func(a, b int64) int64 {
		if a == b {
			return 1000
		}
		return 1000 * min(a, b) / max(a, b)
	}
	out := "user jobs request_permille last_two_permille\n"
	jobs = slices.DeleteFunc(jobs, func(j logJob) bool { return j.asked <= 0 })
	users, of := groupBy(jobs, func(j logJob) int64 { return j.user })
	for _, u := range users {
		mine := of[u]
		if len(mine) < 100 {
			continue
		}
		var request, recent int64
		for i := 2; i < len(mine); i++ {
			request += closeness(mine[i].run, mine[i].asked)
			recent += closeness(2*mine[i].run, mine[i-1].run+mine[i-2].run)
		}
		n := int64(len(mine) - 2)
		out += fmt.Sprintln(u, len(mine), half(request, n), half(recent, n))
	}
	return out
}

// answerBootstrap draws the same samples as the analysis: it has the same random generator with 32-bit arithmetic.
func answerBootstrap(jobs []logJob) string {
	const resamples = 96
	waits := values(jobs, waitOf)
	n := uint64(len(waits))
	means := make([]int64, resamples)
	for b := range means {
		var sum int64
		x := uint32(b + 1)
		for range waits {
			x = 69069*x + 1
			sum += waits[uint64(x)*n>>32]
		}
		means[b] = half(1000*sum, int64(n))
	}
	slices.Sort(means)
	return fmt.Sprint("resamples low median high\n",
		fmt.Sprintln(resamples, nearestRank(means, 25), nearestRank(means, 500), nearestRank(means, 975)))
}
