// Package abacus reproduces what J. Ding, Z. Zhang, R. T. B. Ma and Y. Yang, "Auction-based cloud
// service differentiation with service level objectives", report: the example of figures 2 to 4;
// how many rounds and how long the auction takes, figures 6 to 8; how bids help their users,
// figures 9 and 12; the total time compared with first in, first out, figures 10 and 13; the
// weights recovered from runs, figure 11; and the income from jobs with deadlines, figure 14.
//
// # Model
//
// The paper runs Hadoop; here map and reduce slots are simulated task by task. Reduces begin when
// all maps of their job have ended. The auction is run again whenever a job arrives or completes,
// among all present jobs, with the reported weights. A free slot goes to the job that has the least
// part of its share, among jobs with a task for it. Tasks are not interrupted, and a change of jobs
// takes no time. For figures 10 and 13, clusters with more of Hadoop's properties are run too: data
// of maps on some nodes only, and reduces that hold slots while they wait for maps.
//
// The times of figures 8 and 11c are measured where the study runs; everything else is a function
// of the seed.
package abacus
