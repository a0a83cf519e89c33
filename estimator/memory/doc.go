// Package memory keeps what an estimator has learned from observations of ended jobs, and makes its answers.
//
// # Model
//
// A Memory learns from observations one by one. It keeps only their effect on the estimates.
//
//   - Utility. A kind of job is an account, a name, a market and the classes that its stages use. A completed run shows
//     the utility of the shares that the job had: the slot time that it took, divided by the time from its submission
//     to its end. For runs with the same work, this is the inverse of the response time, multiplied by a constant,
//     which does not matter. With the slot time in it, runs on more input and on less input can be compared. The share
//     of a class is what the vectors allocated to the job, averaged over the time in which it had tasks pending there.
//     If no such time is recorded, the job never waited for a slot, and its share counts as 1. Package utility explains
//     the utility by the shares, in the linear form.
//   - Run times. Every completed stage is a run of its command. Package runtime learns the distribution of the run time
//     of one task.
//   - Completion. Package runtime also learns how long kinds of job wait for their first claim, and how many slots a
//     stage has on average while it runs. A job is then simulated stage by stage, with draws from these distributions.
//   - Types. A valuation becomes a sample of the first job profile class that has the same shape, and whose bounds
//     contain it. Package density learns the density of the samples.
//
// A job that failed or was cancelled is used only for its type.
//
// # Guarantees
//
// A Memory is deterministic: it reads no clock, and its random numbers come from given seeds. A repeated observation of
// a job changes nothing. Observations may come in any order. Utility estimates do not depend on the order, except for
// rounding. Run times are weighted by when the jobs ended, and the oldest run times are forgotten first. The numbers of
// kinds of job and of command are bounded (the least recently seen is removed first), and the data of each is too. Only
// one bit for each observed job is not.
//
// An account's activity changes only the estimates for its own jobs, with two exceptions. The estimate for a user with
// few runs includes the latest run of each account. And in a job profile class an account has at most twice an even
// share of the weight.
//
// # Errors
//
// Observe refuses as Invalid an observation that no auctioneer would make, and then changes nothing. From numbers out
// of range, nothing is learned. Requests are refused as Invalid or NotFound, with the field. No answer has a NaN.
//
// # Cost
//
// On one core of a 2020s server Observe takes 30 µs for a job of two stages and a type, Utility 3 µs, Estimate 1 ms;
// see the benchmarks. A snapshot has about 200 bytes for a kind, and up to 1 kB for each set of similar stages or jobs.
package memory
