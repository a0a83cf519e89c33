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
//
// Figure 6 is reversed here: users get more where the training set says half of the true times. The cause is the
// scheduler and not the menus. Without surrogates, to halve all times in the eyes of the scheduler
// raises what users receive by −0.2 ± 0.3, 7.0 ± 5.6 and 21 ± 11 credits a job at loads 0.8, 0.9 and 0.95; to
// double them in the training set lowers it by 1.2 ± 0.5, 2.5 ± 1.5 and 6.1 ± 3.0. By true times the scheduler is too patient
// with jobs whose value falls late, and more so the longer the queue.
package contracts
