// Package utility learns what shares of each resource are worth to a user's repeated job, from the utilities of its
// runs.
//
// # Model
//
// A run l had a utility u_l, such as the inverse of its run time, and average shares s̄_l: for each of m resources, the
// mean over the run time of the share that the job had (Average). The utility is Σ w_j·s̄_lj (linear) or Σ w_j·ln s̄_lj
// (log). A Regression learns from runs as they end. It finds the weights w by least squares, without intercept:
//
//   - Fit is plain least squares, with the rank, the standard errors and the condition number.
//   - Nonnegative is least squares with w ≥ 0.
//   - Estimate is for practical use: its weights are never negative, and always determined.
//
// Estimate assumes that each weight is normally distributed around a default weight, with a standard deviation as large
// as the default weight, and that each run has normal noise. It returns the most likely weights that are not negative.
// The default is scaled to fit the runs, so only its ratios matter. The noise is computed from the residuals, with one
// more degree of freedom for an assumed noise of a tenth of the utilities. So the noise is not underestimated after a
// few runs that fit by chance. Estimate.Default is the part of the answer that comes from the default: the precision of
// the default divided by the total precision, averaged over directions.
//
// With a half-life, the weight of a run is 2^(−t/half-life) if the latest run ended t after it.
//
// # Shapes and units
//
// m is 1 to 64. Shares are in [0, 1]; for the log form they must be positive. Utilities are in any one unit; durations
// too. Times are the ends of runs.
//
// # Guarantees
//
// Runs may be added in any order; the result equals the regression on the whole history, except for rounding. If the
// rank is below m, because there are fewer runs than resources or their shares are in fixed ratios, Fit says so and
// gives no weights. The rank is the rank of the features with columns scaled to length 1; singular values below 1e-12
// of the largest count as 0. With any rank, the residual sum of squares is the least possible. Standard errors assume
// that runs have independent errors with the same variance, and that a run with a weight of 1/2 counts as half a run.
// The weights of Estimate are at least 0, and one of them is positive. If the unit of utility changes, all weights
// change by the same factor.
//
// A user who reports false utilities misleads only the estimate of the user's own jobs.
//
// # Errors
//
// Shares outside [0, 1], a share of 0 in the log form, numbers that are not finite, lists of different lengths and
// segments without a duration are refused as Invalid, with their place. After an error nothing has changed.
//
// # Cost
//
// Observe takes O(m²) and allocates nothing, 0.16 µs for 4 resources; Estimate takes O(m³), 3 µs for 2 resources, 7 for
// 4 and 200 for 16. A Regression has m·(m+3)/2 numbers, however many runs it has seen.
//
// # Evidence
//
// The lab repeats figure 11 of the source: the true weights are 6 to 1, shares are uniform in (0, 1), and utilities
// have an error of 5 %. The table describes the ratio of the weights in a thousand estimates (TestRecovery of the lab):
//
//	runs  plain: median  from 5 to 9  deviation   Estimate: median  from 5 to 9  deviation
//	   5          5.94         68 %      0.421               5.66         65 %      0.360
//	  10          6.05         83 %      0.198               5.94         81 %      0.193
//	  20          6.02         94 %      0.126               5.99         94 %      0.125
//	  50          6.00        100 %      0.076               5.99        100 %      0.076
//
// "deviation" is the standard deviation of the logarithm of the ratio. The inverse of a run time is only approximately
// linear in the shares. If a job has two phases of 60 and 10 s, and equal shares, the ratio of its weights is 6. With
// other shares, it is 6 times the square of the ratio of the shares. With shares from 1/4 to 1/2 the median with 20
// runs is 5.6.
//
// # Source
//
// J. Ding, Z. Zhang, R. T. B. Ma, Y. Yang, "Auction-based cloud service differentiation with service level objectives",
// section 5: definition 1 is Average, equation 2 Fit. We differ as follows.
//
//   - The paper solves again at each estimate, in O(k·m²); we update a triangular
//     factor by Givens rotations, and solve in O(m³).
//   - It needs m runs before it gives an estimate, and may then give negative weights. Estimate needs no runs, and
//     its weights are never negative.
//   - Equation 2 prints the weights with the index of a job; they belong to a user.
package utility
