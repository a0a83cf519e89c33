package runtime

import "math"

// trust says how good the estimates were. Estimates are made at several levels. The first level uses only the runs that
// are most similar to the new job, and each further level uses more runs. The loss of an estimate says how wrong it
// was. For each level, trust has the sum of the weighted losses and the sum of the weights. Older losses weigh less.
type trust struct {
	Loss, Weight [len(levels)]float64
}

const (
	userMemory = 0.95   // a new loss multiplies the weights of the user's older losses by this factor
	siteMemory = 0.9999 // the same factor for the losses of the whole site
	// inherited is the weight of the site's mean loss in a user's mean loss: it counts like two losses of the user.
	inherited = 2
	// worst is an upper bound for the mean loss of a level. The weight of a level falls exponentially with its mean
	// loss. Without the bound, the weight could underflow to 0.
	worst = 50.0
	// A level is wider if it counts more jobs as similar. If two neighbouring levels have equal mean losses, the wider
	// level gets less weight: `narrow` times the weight of the other level.
	narrow = 0.9
	// tiny is the smallest mean loss that counts; a smaller one counts as 0.01. So all levels with a mean error below 1
	// % count as equally good.
	tiny = 0.01
)

func (t *trust) add(i int, loss, memory float64) {
	t.Loss[i] = memory*t.Loss[i] + loss
	t.Weight[i] = memory*t.Weight[i] + 1
}

// say returns how much weight each level of similarity has in the estimate for a user's job. The weight is
// e^(1−loss/least), where loss is the mean loss of the level, and least is the smallest mean loss of all levels. The
// loss of an estimate says how wrong it was. Wider levels have less weight. A level for which no loss was ever computed
// counts as if it had the least loss. The argument `user` may be nil.
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
