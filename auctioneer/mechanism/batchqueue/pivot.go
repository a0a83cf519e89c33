package batchqueue

import (
	"math"
	"slices"
)

// Stake is what the run of the front job is worth to an account: the value of the front job, if the account owns it, less what the
// delay costs the account's other jobs.
type Stake struct {
	Gain float64
	// Least and Most say which stakes the account could announce, whatever it does: a
	// job that is delayed loses something or nothing.
	Least, Most float64 // −Inf or 0; 0 or +Inf
	Visits      bool    // of another site, which gets no rebate: it could invent accounts
}

// Pivot returns what each account pays for a decision (its tax), and what it gets back (its rebate). An account whose announcement
// changes the decision pays what the others lose by this change (Clarke). Its rebate is an equal part of the least that all accounts
// could pay in total, whatever this account announced (Bailey, Cavallo). So its announcements do not affect its rebate, and the sum of
// rebates is never more than the sum of taxes. Accounts of other sites get no rebate.
//
// If an account's stake is z, and s is the sum of the others' stakes, all pay together
//
//	max(0, −s) + Σ_j max(0, x_j − s − z)   where z ≥ −s, so that the front job runs,
//	max(0, s) + Σ_j max(0, s − x_j + z)    elsewhere.
//
// The first falls with z and the second rises, so the least is at an end of the range that the account can announce. The sums are
// over stakes above and below s. With sorted stakes they take O(log n) for each account.
func Pivot(stakes []Stake) (taxes, rebates []float64) {
	n := len(stakes)
	taxes, rebates = make([]float64, n), make([]float64, n)
	if n < 2 {
		return taxes, rebates
	}
	gains := make([]float64, n)
	all, own := 0.0, n
	for i, s := range stakes {
		if s.Visits {
			own--
		}
		gains[i] = s.Gain
		all += s.Gain
	}
	runs := stands(gains)
	slices.Sort(gains)
	below := make([]float64, n+1) // sums of the least gains
	for i, x := range gains {
		below[i+1] = below[i] + x
	}
	for i, stake := range stakes {
		others := all - stake.Gain
		if runs {
			taxes[i] = max(0, min(stake.Gain, -others))
		} else {
			taxes[i] = max(0, min(-stake.Gain, others))
		}
		if !stake.Visits {
			rebates[i] = leastTotal(gains, below, stake, others) / float64(own)
		}
	}
	return taxes, rebates
}

// leastTotal returns the least that all accounts could pay in total, whatever one account announces. The stakes of the others are the
// gains without its own.
func leastTotal(gains, below []float64, own Stake, others float64) float64 {
	n := len(gains)
	run, stay := math.Inf(1), math.Inf(1) // the least if the front job runs, and if not
	k, _ := slices.BinarySearch(gains, others)
	switch {
	case own.Most > 0:
		run = max(0, -others)
	case others >= 0:
		run = below[n] - below[k] - float64(n-k)*others - max(0, own.Gain-others)
	}
	switch {
	case own.Least < 0:
		stay = max(0, others)
	case others < 0:
		stay = float64(k)*others - below[k] - max(0, others-own.Gain)
	}
	return max(0, min(run, stay))
}

// stands reports whether gains come to at least nothing; a tie does.
func stands(gains []float64) bool {
	plus, minus := 0.0, 0.0
	for _, x := range gains {
		if x > 0 {
			plus += x
		} else {
			minus -= x
		}
	}
	return worth(plus, minus)
}

// StakesOf returns what a decision is worth to the accounts of a queue, and the account of each job. accounts has the accounts by
// position of their jobs. If limits are given, a job's loss or value counts at most up to its limit: what a job cannot pay for
// does not count.
func StakesOf[Account comparable](q *Queue, d *Decision, accounts []Account, limits []float64) (stakes []Stake, of []int) {
	at := map[Account]int{}
	of = make([]int, len(q.Jobs))
	for i, job := range q.Jobs {
		k, known := at[accounts[i]]
		if !known {
			k = len(stakes)
			at[accounts[i]], stakes = k, append(stakes, Stake{})
		}
		of[i] = k
		gain := job.Value
		if i > 0 {
			gain = -job.Delay * d.Delays[i]
		}
		if limits != nil {
			gain = min(max(gain, -limits[i]), limits[i])
		}
		s := &stakes[k]
		s.Gain += gain
		if i == 0 || d.Delays[i] < 0 {
			s.Most = math.Inf(1)
		} else if d.Delays[i] > 0 {
			s.Least = math.Inf(-1)
		}
	}
	return stakes, of
}
