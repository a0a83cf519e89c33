// Package abacus reproduces the results of J. Ding, Z. Zhang, R. T. B. Ma and Y. Yang, "Auction-based cloud service
// differentiation with service level objectives": the example (figures 2 to 4); the rounds and the time of the auction
// (figures 6 to 8); how bids help their users (figures 9 and 12); the total time compared with first in, first out
// (figures 10 and 13); the weights estimated from runs (figure 11); and the income from jobs with deadlines (figure
// 14).
//
// # Model
//
// The paper runs Hadoop. Here, map and reduce slots are simulated task by task. Reduces begin when all maps of their
// job have ended. The auction is run again whenever a job arrives or completes, among all present jobs, with the
// reported weights. A free slot goes to the job that has received the smallest part of its share, among jobs with a
// task for it. Tasks are not interrupted, and a change of jobs takes no time. For figures 10 and 13 there are also
// clusters with more of Hadoop's properties: only some nodes have the data of a map, and reduces hold slots while they
// wait for maps.
//
// The times of figures 8 and 11c are measured on the machine of the study. Everything else depends only on the seed.
package abacus
