// Package utility learns what shares of each resource are worth to a user's
// repeated job, from the utilities that its runs had.
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
// Estimate takes the weights to be normally distributed around a default's, with
// a spread of their own size, and each run to be off by normal noise; its weights
// are the most likely ones, none negative. The default's scale is fitted to the
// runs, so that only its ratios matter. The noise is what the residuals show, with
// one degree of freedom more in which it is a tenth of the utilities: few runs
// that happen to fit exactly are not believed blindly. Estimate.Default is the
// part of the answer that the runs do not determine: the mean, over directions,
// of the default's precision over the total.
//
// With a half-life, a run counts 2^(−t/half-life) when another ended t after it.
//
// # Shapes and units
//
// m is 1 to 64. Shares are in [0, 1], above 0 for the log form; utilities are in
// any one unit; durations in any one unit. Times are those at which runs ended.
//
// # Guarantees
//
// What is updated run by run, in any order, is the regression on the whole
// history to rounding. Where the rank is short, because there are fewer runs
// than resources or their shares are in fixed ratios, Fit says so and gives no
// weights. The rank is of the features with columns scaled to length 1,
// singular values below 1e-12 of the largest counting as 0. In either case the residual sum of
// squares belongs to the best weights. Standard errors take runs
// to have independent errors of one size, and a faded run to be a part of one.
// Estimate's weights are 0 or above, with at least one positive; in another unit
// of utility they are the same, scaled.
//
// A user who reports false utilities misleads only the estimate of the user's
// own jobs.
//
// # Errors
//
// Shares outside [0, 1], a share of 0 in the log form, numbers that are not
// finite, lists of different lengths and segments that last no time are refused
// as Invalid, naming the place. Nothing changes then.
//
// # Cost
//
// Observe takes O(m²) and allocates nothing, 0.16 µs for 4 resources; Estimate
// O(m³), 3 µs for 2 resources, 7 for 4 and 200 for 16. A Regression is m·(m+3)/2
// numbers, however many runs it has seen.
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
// The deviation is the deviation of the ratio's logarithm. The inverse of a run time is
// linear in the shares only nearly: a job of two phases of 60 and 10 s has weights
// in the ratio of their times where its shares are equal, and that times the square
// of the shares' ratio elsewhere. With shares from 1/4 to 1/2 the median of 20 runs is
// 5.6.
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
