// Package density estimates the distribution of the types that users submit to a job profile class, by multivariate
// Gaussian kernels, and draws from it.
//
// # Model
//
// The density is f(x) = Σ w_k·N(x; d_k, H) / Σ w_k over samples d_k of weight w_k, all kernels with the covariance H,
// the bandwidth matrix. A weight is a count: a sample of weight 3 has the same effect as three equal samples.
//
//   - New makes a Density from Data and H. Bandwidth chooses H by the rules of Scott and Silverman, full or diagonal.
//     Regular repairs a singular H.
//   - Density.Log evaluates the density. Draw and DrawWithin draw from it; DrawWithin draws only within a template's
//     bounds. Divergence compares two densities.
//   - The weight of an account is bounded, and outliers are screened out.
//   - Class does all this for samples as they arrive, in bounded memory. Until there are enough samples, it uses a
//     prior. It can be saved and restored.
//
// The rules assume a distribution of one mode: they blur narrow modes that are far apart. Use a profile for each mode
// instead.
//
// # Shapes and units
//
// A sample or point has L coordinates, 1 to 32, in any unit for each parameter, of magnitude up to 1e100. Values are
// n·L numbers, sample by sample. Log-densities and divergences are in nats.
//
// # Guarantees
//
// The density is exact except for rounding and for kernels below 1e-19 of the largest at a point. The logarithm of the
// density does not underflow. It is finite for every point, even for a NaN. No function returns NaN. The density does
// not depend on the order of samples. If a full rule chooses H, a linear map of the samples changes the density by the
// same map. Draws within bounds follow the truncated density. If a hundred draws in a row fall outside, the last one is
// reflected at the bounds. The same seed gives the same draws.
//
// Degenerate samples have a bandwidth too: a coordinate without spread gets 1/1000 of its scale (for a Class, of the
// width of its bounds), and correlations of a singular matrix are reduced by 1 %.
//
// In a Class, an account has at most twice an even share of the weight, so 5 % of the accounts have at most 10 %. Lies
// far from all other samples are screened out: from 50 samples on, a sample stays only if accounts with 12 % of the
// weight have samples near it. Lies just outside the honest types are not screened out. They count as much as the
// weight of their accounts. TestPoisoning measures this: 2 of 40 accounts lie five times as often as the others submit,
// with types of section IV of the paper in the bounds ±10000 around them. Divergence from the truth, in nats:
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
// Screening has a cost: a separate mode with less than 12 % of the weight is screened out, and a mode with a fifth
// loses its outer samples. With fewer than 17 accounts, the lies of an account that submits many types are not screened
// out, because twice its even share is 12 % or more.
//
// A Class has 1024 kernels by default. Further nearby samples of an account are merged, and one of them, drawn by
// weight, represents all. The estimate is then about as good as from 1024 samples, and does not improve with more.
// Accounts share the kernels evenly; when there are half as many accounts as kernels, all later accounts count as one.
//
// # Errors
//
// Numbers that are not finite or out of range are Invalid, and the error names the sample and the coordinate. An H that
// is not positive definite, a single sample (no rule can choose H from it), and a constant coordinate without a scale
// are also Invalid. After an error nothing has changed. A Class accepts no sample outside its template.
//
// # Cost
//
// Log takes O(n·L), 8 µs for 1000 samples in three dimensions on one core of a 2020s server, and allocates nothing; a
// draw takes 0.06 µs, and Bandwidth O(n·L²). Class.Add takes O(Kernels·L): 9 µs if one account has all kernels, 0.4 µs
// if a hundred accounts share them. Class.Estimate takes nothing unless samples have grown by 1/32, and then
// O(Kernels²·L), 8 ms at most. `go test -bench .` shows more.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering valuations and enforcing truthfulness in a
// deadline-aware scheduler", sections III-B and IV-B. We differ as follows.
//
//   - The paper prints |H|^(−1/2) also inside the kernel, although H^(−1/2) would be right.
//   - For the bandwidth it refers to Wand and Jones, Kernel Smoothing (1994), whose rules we use. It does not say how
//     to screen, or how to limit the weight of an account. The lab repeats its figure 7: from 50 samples on the mean
//     divergence falls slowly, and from 20 on its variance is small.
package density
