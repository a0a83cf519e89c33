// Package memory has what an estimator learned from the observations of ended jobs, and makes
// its answers.
//
// # Model
//
// A Memory learns from observations one by one and keeps none of them, only their effect on the
// estimates.
//
//   - Utility. A kind of job is an account, a name, a market and the classes that
//     its stages use. A run of it that completed says that the shares which were
//     in force had a utility: the seconds of slot time it took, over the seconds
//     from its submission to its end. For runs with the same work that is the
//     inverse of the response time, up to a factor that does not matter; divided
//     by work, runs on more and on less input can be compared. The share of a
//     class is what the vectors allocated to the job, averaged over the time in
//     which it had work pending there; where no time is recorded, it waited for
//     no slot, and its share counts as 1. Package utility regresses the one on
//     the others, in the linear form.
//   - Run times. Every stage that completed is a run of its command: package
//     runtime learns the distribution of what one task takes.
//   - Completion. Package runtime also learns how long kinds of job wait for their
//     first claim, and how many slots a stage has on average while it runs; a job
//     is then played through, stage by stage, from draws of all of these.
//   - Types. A valuation is a sample of the first job profile class that has its
//     shape and has it within its bounds; package density learns their density.
//
// A job that failed or was cancelled is used only for its type.
//
// # Guarantees
//
// A Memory is deterministic: it reads no clock, and its random numbers come from given seeds. A
// repeated observation of a job changes nothing. Observations may come in any order: utility
// estimates do not depend on it, except for rounding; run times are weighted by when the jobs
// ended, which also decides what is forgotten first. Memory is bounded: in the kinds of job and
// of command that are remembered (the least recently seen is removed first), and in what is
// kept of each. In addition there is one bit for each job seen.
//
// An account's activity changes only the estimates for its own jobs, with two exceptions. The
// estimate for a user with few runs includes everybody's latest runs, with one run of each
// account. And in a job profile class an account has at most twice an even share of the weight.
//
// # Errors
//
// Observe refuses an observation that no auctioneer makes as Invalid, and changes nothing then.
// Numbers out of range in it make it uninformative. Requests are refused as Invalid or
// NotFound, with the field. No answer has a NaN.
//
// # Cost
//
// On one core of a 2020s server Observe takes 30 µs for a job of two stages and a type, Utility
// 3 µs, Estimate 1 ms; see the benchmarks. A snapshot has about 200 bytes for a kind, and up to
// 1 kB for each set of similar stages or jobs.
package memory
