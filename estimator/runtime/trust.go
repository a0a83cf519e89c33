package runtime

import "math"

// trust says how good the estimates were. Estimates are made at several levels. The first level uses only the runs that
// are most similar to the new job, and each further level uses more runs. The loss of an estimate says how wrong it
// was. For each level, trust has the sum of the weighted losses and the sum of the weights. Older losses weigh less.
type trust struct {
	Loss, Weight [len(levels)]float64
}

const (
	userMemory = 0.95   // each new loss multiplies the weights of a user's older losses by it
	siteMemory = 0.9999 // the same for the losses of the whole site
	// A user's mean loss is computed from the user's own losses and the site's mean loss. The site's mean loss has the
	// same weight as two of the user's own losses.
	inherited = 2
	// worst is an upper bound for the mean loss of a level. The weight of a level falls exponentially with its mean
	// loss. Without the bound, the weight could underflow to 0.
	worst = 50.0
	// A level is wider if it counts more jobs as similar. If two neighbouring levels have equal mean losses, the wider
	// level gets less weight: `narrow` times the weight of the other level.
	narrow = 0.9
	// A mean loss below 0.01 counts as 0.01. So all levels with a mean error below 1 % count as equally good.
	tiny = 0.01
)

func (t *trust) add(i int, loss, memory float64) {
	t.Loss[i] = memory*t.Loss[i] + loss
	t.Weight[i] = memory*t.Weight[i] + 1
}

// The loss of an estimate says how wrong the estimate was. say returns how much weight each level of similarity has in
// the estimate for a user's job. The weight is e^(1−loss/least), where loss is the mean loss of the level, and least is
// the smallest mean loss of all levels. Wider levels have less weight. A level for which no loss was ever computed
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
