// Package density estimates the distribution of the types that users submit to a job profile
// class, by multivariate Gaussian kernels, and draws from it.
//
// # Model
//
// The density is f(x) = Σ w_k·N(x; d_k, H) / Σ w_k over samples d_k of weight
// w_k, all kernels with the covariance H, the bandwidth matrix. A weight is a
// count: a sample of weight 3 is in every respect three equal samples.
//
//   - New makes a Density of Data and H; Bandwidth chooses H by the rules of Scott
//     and Silverman, full or diagonal; Regular mends an H that is singular.
//   - Density.Log evaluates it, Draw and DrawWithin draw from it, the latter
//     truncated to a template's bounds; Divergence compares two.
//   - The weight of an account is bounded, and outliers are screened out.
//   - Class does all this for samples as they arrive, in bounded memory, with a
//     prior until there are enough; it can be saved and restored.
//
// The rules assume a distribution of one mode: they blur narrow modes that are far apart. Use a
// profile for each mode instead.
//
// # Shapes and units
//
// A sample or point has L coordinates, 1 to 32, in the parameters' own units,
// of magnitude up to 1e100; no unit is better than another. Values are n·L
// numbers, sample by sample. Log-densities and divergences are in nats.
//
// # Guarantees
//
// The density is exact except for rounding and for kernels below 1e-19 of the largest at a
// point. Its logarithm does not underflow and is finite for every point, even one that is not a
// number; nothing returns NaN. It does not depend on the order of samples, and a full rule
// commutes with every linear map. Draws within bounds follow the truncated density; if a
// hundred in a row fall outside, the last is reflected at the bounds. The same seed gives the
// same draws.
//
// Degenerate samples have a bandwidth too: a coordinate without spread gets 1/1000 of its scale
// (for a Class, of the width of its bounds), and correlations of a singular matrix are reduced
// by 1 %.
//
// In a Class, an account has at most twice an even share of the weight, so 5 % of the accounts
// have at most 10 %. Their lies are screened out where nobody else has samples: from 50 samples
// on, a sample stays only if accounts with 12 % of the weight have samples near it. Lies just
// outside the honest types are believed, with the liars' weight. TestPoisoning measures this: 2
// of 40 accounts lie five times as often as the others submit, with types of section IV of the
// paper in the bounds ±10000 around them. Divergence from the truth, in nats:
//
//	turns  lie                        no liars  capped and screened  neither
//	  200  the template's corner         0.068                0.087    1.715
//	  200  10 σ from the mean            0.068                0.087    0.560
//	  200  anywhere                      0.068                0.068    1.426
//	  200  4 σ from the mean             0.068                0.165    0.301
//	 2000  the template's corner         0.015                0.016    1.325
//	 2000  10 σ from the mean            0.015                0.020    0.378
//	 2000  anywhere                      0.015                0.011    0.877
//	 2000  4 σ from the mean             0.015                0.137    0.253
//
// The price: a separate mode with less than 12 % of the weight is screened out, and one with a
// fifth loses its outer samples. With fewer than 17 accounts, an account that submits much is
// believed whatever it says, because twice its even share is 12 % or more.
//
// A Class has 1024 kernels by default. Beyond that, nearby samples of an account are merged,
// and one of them, drawn by weight, represents all. The estimate is then about as good as from
// that many samples, and does not improve with more. Accounts share the kernels evenly; when
// there are half as many accounts as kernels, all later accounts count as one.
//
// # Errors
//
// Numbers that are not finite or out of range are Invalid, and the error names the sample and
// the coordinate. So are an H that is not positive definite; a single sample, from which no
// rule can choose; and a coordinate that never varies and has no scale. Nothing changes then. A
// Class accepts no sample outside its template.
//
// # Cost
//
// Log takes O(n·L), 8 µs for 1000 samples in three dimensions on one core of a
// 2020s server, and allocates nothing; a draw 0.06 µs; Bandwidth O(n·L²). Class.Add takes O(Kernels·L): 9 µs
// where one account has all kernels, 0.4 where a hundred share them.
// Class.Estimate takes nothing unless samples have grown by 1/32, and then
// O(Kernels²·L), 8 ms at most. `go test -bench .` shows more.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering
// valuations and enforcing truthfulness in a deadline-aware scheduler", sections
// III-B and IV-B. We differ as follows.
//
//   - The paper prints |H|^(−1/2) also inside the kernel, where H^(−1/2) is meant.
//   - It leaves the bandwidth to Wand and Jones, Kernel Smoothing (1994), whose
//     rules these are. It says neither how to screen nor what an account may
//     weigh. The lab repeats its figure 7: from 50 samples on the mean
//     divergence falls slowly, and from 20 on its variance is small.
package density
