package aria

import "math"

// Phase is a phase of a job: a number of tasks that run on slots of one class.
type Phase struct {
	Class   int
	Tasks   int
	Mean    float64 // mean duration of a task
	Longest float64 // duration of the longest task
}

// On S slots, the time of the phase is estimated as a/S + c. The method work returns a, and the method tail returns c.
func (p *Phase) work() float64 { return (float64(p.Tasks) - 0.5) * p.Mean }
func (p *Phase) tail() float64 { return p.Longest / 2 }

// Estimate returns the estimated time of phases that run one after the other, each on its slots.
func Estimate(phases []Phase, slots []int) float64 {
	sum := 0.0
	for i := range phases {
		if phases[i].Tasks > 0 {
			sum += phases[i].work()/float64(slots[i]) + phases[i].tail()
		}
	}
	return sum
}

// Fewest computes how many slots each phase needs so that all phases end within the time `left`, by the estimate. It
// returns the smallest such numbers, and true. If the time is too short, it returns as many slots as each phase can
// use, and false. The argument `slots` has the number of slots of each class. The result is stored in the list `out`,
// which grows if needed.
func Fewest(phases []Phase, slots []int, left float64, out []int) ([]int, bool) {
	out = out[:0]
	for _, p := range phases {
		out = append(out, min(p.Tasks, slots[p.Class]))
	}
	if !(Estimate(phases, out) <= left) {
		return out, false
	}
	lagrange(phases, left, out)
	if !(Estimate(phases, out) <= left) { // rounding may have made the estimate too large
		for i, p := range phases {
			out[i] = min(p.Tasks, slots[p.Class])
		}
	}
	trim(phases, left, out)
	return out, true
}

// lagrange computes the fewest slots with which all phases end in time. It solves the problem in real numbers, and
// rounds the result up. The caller fills `slots` with the largest number of slots that each phase can use. If the
// solution gives a phase more than this number, the phase gets this number. The other phases are then solved again with
// the time that is left.
func lagrange(phases []Phase, left float64, slots []int) {
	open := 0 // one bit for each phase that is not solved yet
	for i, p := range phases {
		left -= p.tail()
		if p.Tasks > 0 {
			open |= 1 << i
		}
	}
	for changed := true; changed; {
		changed = false
		roots := 0.0
		for i := range phases {
			if open&(1<<i) != 0 {
				roots += math.Sqrt(phases[i].work())
			}
		}
		for i := range phases {
			if open&(1<<i) == 0 {
				continue
			}
			if want := math.Sqrt(phases[i].work()) * roots / left; !(want <= float64(slots[i])) {
				open &^= 1 << i
				left -= phases[i].work() / float64(slots[i])
				changed = true
				break
			}
		}
		if !changed {
			settle(phases, slots, open, roots/left)
		}
	}
}

func settle(phases []Phase, slots []int, open int, factor float64) {
	for i := range phases {
		if open&(1<<i) != 0 {
			slots[i] = max(1, min(slots[i], int(math.Ceil(math.Sqrt(phases[i].work())*factor))))
		}
	}
}

// trim takes slots away again, phase by phase, as long as the estimated length of the job is at most `left`. They may
// not all be needed, because the numbers were rounded up from exact numbers.
func trim(phases []Phase, left float64, slots []int) {
	for i := range phases {
		for slots[i] > 1 {
			slots[i]--
			if Estimate(phases, slots) > left {
				slots[i]++
				break
			}
		}
	}
}
