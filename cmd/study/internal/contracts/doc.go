// Package contracts reproduces what Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong
// and M. Chiang, "Discovering valuations and enforcing truthfulness in a
// deadline-aware scheduler", report: menus of contracts and what they leave the
// user, figures 4 and 5; the utilities of a thousand jobs whose types were estimated
// from three training sets, figure 6; and how far an estimate is from the truth
// after so many samples, figure 7.
//
// # Model
//
// Types are sigmoids of 100 credits with (μ, δ) normal around (2000, 1000), standard
// deviations 1000 and 500, drawn again unless they are valuations. An estimate is of
// Gaussian kernels by Scott's rule. Where the paper runs Hadoop on a cluster, here
// the cluster is one server that works on one job at a time, in the order of package
// deadlineaware, resumes what it interrupts, and knows how much work there is; the
// work of a job is exponential. The paper does not report its jobs' work.
package contracts
