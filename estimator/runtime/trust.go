package runtime

import "math"

// trust is how far the guesses of each level were off: sums of losses and of
// their weights, faded.
type trust struct {
	Loss, Weight [len(levels)]float64
}

const (
	userMemory = 0.95   // by what a loss counts less after another of the same user
	siteMemory = 0.9999 // and of the site
	// inherited is as how many losses of a user's own the site's mean counts.
	inherited = 2
	// worst bounds a mean loss, so that its exponential does not underflow.
	worst = 50.0
	// narrow is how much each level has to say by the one before it, if both are as
	// good.
	narrow = 0.9
	// tiny is what a mean loss is at least: 1 %, below which levels do not differ.
	tiny = 0.01
)

func (t *trust) add(i int, loss, memory float64) {
	t.Loss[i] = memory*t.Loss[i] + loss
	t.Weight[i] = memory*t.Weight[i] + 1
}

// say is how much each level has to say about a user's jobs: e^(1−loss/least),
// with losses on average and the least of them, and a little less the wider it is.
// user may be nil. A level never judged is as good as the best.
func (t *trust) say(user *trust) (say [len(levels)]float64) {
	best := worst
	for i := range say {
		sum, weight := 0.0, 0.0
		if t.Weight[i] > 0 {
			sum, weight = inherited*t.Loss[i]/t.Weight[i], inherited
		}
		if user != nil {
			sum, weight = sum+user.Loss[i], weight+user.Weight[i]
		}
		say[i] = tiny
		if weight > 0 {
			say[i] = min(worst, max(tiny, sum/weight))
			best = min(best, say[i])
		}
	}
	for i, loss := range say {
		say[i] = math.Exp(max(-worst, 1-max(1, loss/best)))
		say[i] *= math.Pow(narrow, float64(i))
	}
	return say
}
