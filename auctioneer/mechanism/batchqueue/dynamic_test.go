package batchqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// played is a queue of jobs that are all there, considered to its end: what each account
// has of it by the true values and costs, and which jobs run.
func played(told, truth []Job, accounts []int, decide func(q *Queue, accounts []int) (bool, map[int]float64)) (payoffs map[int]float64, ran []bool) {
	payoffs = map[int]float64{}
	q, at := &Queue{Nodes: 4, Jobs: told}, 0.0
	for k := range told {
		runs, pays := decide(q, accounts[k:])
		for account, x := range pays {
			payoffs[account] -= x
		}
		wait, next := 0.0, q.discard()
		if runs {
			wait, next = q.start()
			payoffs[accounts[k]] += truth[k].Value
		}
		at += wait
		payoffs[accounts[k]] -= truth[k].Delay * at
		ran, q = append(ran, runs), next
	}
	return payoffs, ran
}

func dynamic(q *Queue, accounts []int) (bool, map[int]float64) {
	return Dynamic(q, accounts, func(int) bool { return true })
}

func welfare(payoffs map[int]float64) (sum float64) {
	for _, x := range payoffs {
		sum += x
	}
	return sum
}

// TestDynamicIsHonestAcrossDecisions: in queues of up to six jobs that are all there, no
// account gains by other values and costs of delay for any of its jobs, over all decisions
// together; the plain pivot is the control. The jobs are worth the most that any choice
// of the jobs that run gives.
func TestDynamicIsHonestAcrossDecisions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	static := func(q *Queue, accounts []int) (bool, map[int]float64) {
		now := &Queue{Nodes: q.Nodes, Running: q.Running, Jobs: slices.Clone(q.Jobs)}
		d := decide(now)
		stakes, of := StakesOf(now, d, accounts, nil)
		taxes, _ := Pivot(stakes)
		pays := map[int]float64{}
		for i, account := range accounts {
			pays[account] = taxes[of[i]]
		}
		return d.Runs, pays
	}
	gained := 0
	for n := range 150 {
		truth, accounts := make([]Job, 2+r.IntN(5)), make([]int, 6)
		for i := range truth {
			truth[i] = Job{Value: float64(r.IntN(100)), Delay: float64(r.IntN(6)), Length: float64(1 + r.IntN(9)), Width: 1 + r.IntN(4)}
			accounts[i] = r.IntN(4)
		}
		accounts = accounts[:len(truth)]
		honest, _ := played(truth, truth, accounts, dynamic)
		plain, _ := played(truth, truth, accounts, static)
		best := 0.0
		for choice := range 1 << len(truth) {
			k := -1
			payoffs, _ := played(truth, truth, accounts, func(*Queue, []int) (bool, map[int]float64) { k++; return choice>>k&1 == 1, nil })
			if w := welfare(payoffs); choice == 0 || w > best {
				best = w
			}
		}
		taxed, ran := played(truth, truth, accounts, dynamic)
		k := -1
		untaxed, _ := played(truth, truth, accounts, func(*Queue, []int) (bool, map[int]float64) { k++; return ran[k], nil })
		if w := welfare(untaxed); w < best-1e-9 || welfare(taxed) > w+1e-9 {
			t.Fatalf("%d: %+v: worth %v, the best is %v", n, truth, w, best)
		}
		for range 20 {
			told, liar := slices.Clone(truth), accounts[r.IntN(len(truth))]
			for i := range told {
				if accounts[i] == liar {
					told[i].Value, told[i].Delay = float64(r.IntN(200)), float64(r.IntN(20))
				}
			}
			if lying, _ := played(told, truth, accounts, dynamic); lying[liar] > honest[liar]+1e-9 {
				t.Fatalf("%d: %+v of %v: account %d has %v, by %+v it has %v", n, truth, accounts, liar, honest[liar], told, lying[liar])
			}
			if lying, _ := played(told, truth, accounts, static); lying[liar] > plain[liar]+1e-9 {
				gained++
			}
		}
	}
	if gained == 0 {
		t.Error("nobody gains by a lie where each decision is priced by itself, so that this test has no power")
	}
	t.Logf("with the plain pivot %d of 3000 lies gain", gained)
}
