// Package utility learns what shares of each resource are worth to a user's repeated job, from
// the utilities of its runs.
//
// # Model
//
// A run l had the average job resource s̄_l, for each of m resources the mean of
// its share over the time that the run took (Average), and a utility
// u_l, such as the inverse of that time. Utility is Σ w_j·s̄_lj (linear) or
// Σ w_j·ln s̄_lj (log). A Regression takes in runs as they end and finds the
// weights of least squares, without intercept:
//
//   - Fit is plain, with the rank, the standard errors and the condition.
//   - Nonnegative is under w ≥ 0.
//   - Estimate is what to go by: never negative, never undetermined.
//
// Estimate assumes that the weights are normally distributed around a default's, with a spread
// of their own size, and that each run has normal noise. It returns the most likely weights
// that are not negative. The default is scaled to fit the runs, so only its ratios matter. The
// noise comes from the residuals, with one more degree of freedom in which it is a tenth of the
// utilities: so a few runs that fit exactly by chance are not overrated. Estimate.Default is
// the part of the answer that the runs do not determine: the mean, over directions, of the
// default's precision over the total.
//
// With a half-life, a run counts 2^(−t/half-life) when another ended t after it.
//
// # Shapes and units
//
// m is 1 to 64. Shares are in [0, 1], above 0 for the log form. Utilities are in any one unit,
// and so are durations. Times are the ends of runs.
//
// # Guarantees
//
// Runs may be added in any order; the result equals the regression on the whole history, except
// for rounding. If the rank is below m, because there are fewer runs than resources or their
// shares are in fixed ratios, Fit says so and gives no weights. The rank is the rank of the
// features with columns scaled to length 1; singular values below 1e-12 of the largest count as
// 0. In either case the residual sum of squares is of the best weights. Standard errors assume
// that runs have independent errors of one size, and that a faded run is a part of one.
// Estimate's weights are 0 or above, at least one of them positive; with another unit of
// utility they are scaled.
//
// A user who reports false utilities misleads only the estimate of the user's
// own jobs.
//
// # Errors
//
// Shares outside [0, 1], a share of 0 in the log form, numbers that are not finite, lists of
// different lengths and segments without a duration are refused as Invalid, with their place.
// Nothing changes then.
//
// # Cost
//
// Observe takes O(m²) and allocates nothing, 0.16 µs for 4 resources; Estimate takes O(m³), 3
// µs for 2 resources, 7 for 4 and 200 for 16. A Regression has m·(m+3)/2 numbers, however many
// runs it has seen.
//
// # Evidence
//
// The lab repeats figure 11 of the source: a user whose weights are 6 to 1, shares
// anywhere in (0, 1), utilities 5 % off. Of a thousand estimates (its TestRecovery):
//
//	runs  plain: median  from 5 to 9  deviation   Estimate: median  from 5 to 9  deviation
//	   5          5.94         68 %      0.421               5.66         65 %      0.360
//	  10          6.05         83 %      0.198               5.94         81 %      0.193
//	  20          6.02         94 %      0.126               5.99         94 %      0.125
//	  50          6.00        100 %      0.076               5.99        100 %      0.076
//
// "deviation" is of the ratio's logarithm. The inverse of a run time is only approximately
// linear in the shares: a job of two phases of 60 and 10 s has weights in the ratio of their
// times if its shares are equal, and otherwise in that ratio times the square of the shares'
// ratio. With shares from 1/4 to 1/2 the median of 20 runs is 5.6.
//
// # Source
//
// J. Ding, Z. Zhang, R. T. B. Ma, Y. Yang, "Auction-based cloud service
// differentiation with service level objectives", section 5: definition 1 is
// Average, equation 2 Fit. We differ as follows.
//
//   - The paper solves anew at each estimate, in O(k·m²); we update a triangular
//     factor by Givens rotations, and solve in O(m³).
//   - It needs m runs before it says anything, and may then say that a share is
//     worth less than nothing: Estimate does neither.
//   - Equation 2 prints the weights with a job's index; they are a user's.
package utility
