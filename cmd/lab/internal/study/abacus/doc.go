// Package abacus reproduces what J. Ding, Z. Zhang, R. T. B. Ma and Y. Yang,
// "Auction-based cloud service differentiation with service level objectives",
// report: the example of figures 2 to 4; how many rounds and how long the auction
// takes, figures 6 to 8; what bids do for their users, figures 9 and 12; the total
// time against first in, first out, figures 10 and 13; the weights recovered from
// runs, figure 11; and what jobs with deadlines bring in, figure 14.
//
// # Model
//
// Where the paper runs Hadoop, map and reduce slots are simulated, task by task.
// Reduces begin when all maps of their job have ended. The auction is held anew
// when a job comes or has been completed, among all jobs that have not, on the
// weights reported; a free slot goes to the job with least of its share, of those
// that have a task for it. Tasks are not interrupted, and a change of jobs costs
// no time. For figures 10 and 13, clusters with some of what Hadoop has besides are
// run too: data of maps on some nodes only, and reduces that hold slots while they
// wait for maps.
//
// The times of figures 8 and 11c are measured where the study runs; all else is a
// function of the seed.
package abacus
