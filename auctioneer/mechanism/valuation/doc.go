// Package valuation computes what the completion of a job is worth at each time, and the inverse: the latest time at
// which completion has a given value.
//
// # Model
//
// A valuation v(x) is a function of x, the seconds from submission to completion. It is at most its maximum and never
// rises. There are these classes (job.Valuation has the parameters):
//
//	sigmoidal     max/(1+e^{a(x−b)}), b = μ+δ/2, a = 2·ln((1−ε)/ε)/δ,
//	              so that v(μ) = (1−ε)·max and v(μ+δ) = ε·max
//	hard          max up to and including the deadline, then 0
//	recurrent     hard, with the deadline workload × seconds per unit
//	linear-decay  max up to μ, then straight down to 0 at μ+δ
//	custom        straight lines between points, level before and after them
//
// New makes the Curve of a valuation. Curve.At is v. Curve.Latest is its inverse: the last x at which v(x) is at least
// a level.
//
// # Shapes and units
//
// Times are in seconds since submission, values and levels in credits.
//
// # Guarantees
//
// 0 ≤ v(x) ≤ max, and v never rises, also in floating point. If v is continuous and falling at x = Latest(y), then
// At(x) equals y with a relative error of 1e-12·(1+a·x). Up to this error, later times are worth less than y.
//
// # Errors
//
// New refuses as Invalid what job.Valuation.Validate refuses; the error names the field. At and Latest accept all
// numbers. They return NaN only for NaN.
//
// # Cost
//
// At and Latest take one exponential, or a binary search of the points.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering valuations and enforcing truthfulness in a
// deadline-aware scheduler", sections III-B and IV. The paper says that the sigmoid "becomes zero" at μ+δ, but no
// sigmoid becomes zero. ε is the part of the maximum that is left there, by default 0.01. The paper's triple (max
// value, dropping point, zero point) is our (max, μ, μ+δ).
package valuation
