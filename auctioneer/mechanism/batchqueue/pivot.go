package batchqueue

import (
	"math"
	"slices"
)

// Stake is what an account gains if the front job runs. It is the value of the front job, if the account owns this job,
// minus the cost of the delay for the account's other jobs.
type Stake struct {
	Gain float64
	// The fields Least and Most bound the stake that the account could announce. If a delay can only cost the account's
	// jobs something, Most is 0.
	Least, Most float64 // Least is −Inf or 0, Most is 0 or +Inf
	Visits      bool    // an account of another site; it gets no rebate, because that site could invent accounts
}

// Pivot returns what each account pays for a decision (its tax), and what it gets back (its rebate). An account whose
// announcement changes the decision pays what the others lose by this change (Clarke). Its rebate is an equal part of
// the least total that all accounts could pay, over all announcements of this account (Bailey, Cavallo). So its
// announcements do not affect its rebate. Accounts of other sites get no rebate.
//
// Let z be the stake that an account announces, x_j the stakes of the others, and s the sum of all x_j. Then all
// accounts together pay
//
//	max(0, −s) + Σ_j max(0, x_j − s − z)   where z ≥ −s, so that the front job runs,
//	max(0, s) + Σ_j max(0, s − x_j + z)    elsewhere.
//
// The first total decreases with z and the second increases. So the least total is at z = −s or at a bound of the range
// that the account can announce. With sorted stakes the sums take O(log n) for each account.
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
	below := make([]float64, n+1) // below[k] is the sum of the k smallest gains
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

// leastTotal considers all announcements that one account could make. It returns the least total that all accounts
// would pay. `own` is the stake of this account. `gains` has the gains of all accounts in ascending order, and
// `below[k]` is the sum of the first k of them. `others` is the sum of the gains of all other accounts.
func leastTotal(gains, below []float64, own Stake, others float64) float64 {
	n := len(gains)
	run, stay := math.Inf(1), math.Inf(1) // the least total if the front job runs, and if it does not
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

// stands reports whether the front job of the queue runs. The argument `gains` has, for each account, what the account
// gains if the front job runs now. The job runs if the sum of the gains is at least 0.
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

// StakesOf returns what a decision is worth to each account of a queue. It also returns, for each job, the position of
// its account in the first result. The argument `accounts` lists the accounts of the jobs, by position in the queue. If
// `limits` is set, the loss or the value of a job counts only up to the job's limit, because a job cannot pay more.
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
