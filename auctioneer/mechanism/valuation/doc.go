// Package valuation computes what a job's completion is worth at each time, and
// the inverse, by when it must complete to be worth as much.
//
// # Model
//
// A valuation v(x) is a function of x, the seconds from submission to
// completion, that starts at most at its maximum and never rises. Its class
// says which (messages.Valuation has the parameters):
//
//	sigmoidal     max/(1+e^{a(x−b)}), b = μ+δ/2, a = 2·ln((1−ε)/ε)/δ,
//	              so that v(μ) = (1−ε)·max and v(μ+δ) = ε·max
//	hard          max up to and including the deadline, then 0
//	recurrent     hard, with the deadline workload × seconds per unit
//	linear-decay  max up to μ, then straight down to 0 at μ+δ
//	custom        straight lines between points, level before and after them
//
// New makes the Curve of a valuation; Curve.At is v and Curve.Latest its
// inverse, the last x at which v(x) is at least a level.
//
// # Shapes and units
//
// Times are in seconds since submission, values and levels in credits.
//
// # Guarantees
//
// 0 ≤ v(x) ≤ max, and v never rises, in floating point too. At(Latest(y)) is y
// to a relative error of 1e-12 times 1+a·x, the sigmoid's condition, wherever v
// is continuous and falling; nothing later is worth more than y, but for that error.
//
// # Errors
//
// New refuses what messages.Valuation.Validate does, as Invalid, naming the
// field. At and Latest are total: they return NaN for NaN alone.
//
// # Cost
//
// One exponential, or a binary search of the points.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering
// valuations and enforcing truthfulness in a deadline-aware scheduler", sections
// III-B and IV. The paper lets the sigmoid "become zero" at μ+δ, which no sigmoid
// does; ε says how near it comes, and is 0.01 where nothing is said. Its triple
// (max value, dropping point, zero point) is our (max, μ, μ+δ).
package valuation
