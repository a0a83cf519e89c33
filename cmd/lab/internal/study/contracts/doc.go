// Package contracts reproduces the results of Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong and M. Chiang,
// "Discovering valuations and enforcing truthfulness in a deadline-aware scheduler". Figures 4 and 5 show menus of
// contracts and the user's utility of each contract. Figure 6 shows the utilities of a thousand jobs, with the
// distribution of types estimated from three training sets. Figure 7 shows how far such an estimate is from the truth,
// by the number of samples.
//
// # Model
//
// Types are sigmoids of 100 credits. The pair (μ, δ) is normal around (2000, 1000) seconds with standard deviations
// 1000 and 500, and is drawn again until it is a valid valuation. A distribution of types is estimated with Gaussian
// kernels by Scott's rule. The paper runs Hadoop on a cluster. Here the cluster is one server that works on one job at
// a time, in the order of package deadlineaware. It resumes interrupted jobs, and knows how much work each has left.
// The work of a job is exponentially distributed, because the paper does not report it.
//
// The result of figure 6 is reversed here: users get more if the training set has half of the true times. The cause is
// the scheduler, not the menus. Without surrogates, if the scheduler sees half of the true times, users receive −0.2 ±
// 0.3, 7.0 ± 5.6 and 21 ± 11 credits more for a job at loads 0.8, 0.9 and 0.95. With twice the true times, users
// receive 1.2 ± 0.5, 2.5 ± 1.5 and 6.1 ± 3.0 credits less. With the true times, the scheduler lets jobs whose value
// falls late wait too long, and longer if the queue is long.
package contracts
