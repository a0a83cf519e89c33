// Package memory is what an estimator has learned from the observations of jobs
// that have ended, and what it answers from that.
//
// # Model
//
// A Memory learns from observations, one by one, and keeps none of them: of each it
// keeps what it changes in the estimates.
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
// A job that failed or was cancelled tells of its type only.
//
// # Guarantees
//
// A Memory is deterministic: it reads no clock and draws no random numbers but
// from seeds that it is given. An observation of a job that was observed before
// changes nothing. Observations may come in any order: utility estimates do not
// depend on it, but for rounding; run times are weighted by when the jobs ended,
// and which are forgotten first depends on that too. It is bounded: in the kinds of
// job and of command that are remembered, the one not seen for longest being
// forgotten first, and in what is kept of each. In addition there is a bit for each job seen.
//
// What an account does moves the estimates for its own jobs alone, but for two
// things. Users with few runs of their own are told of everybody's last runs, among
// which an account has one; and in a job profile class an account has at most twice
// an even part.
//
// # Errors
//
// Observe refuses an observation that no auctioneer makes, as Invalid, and changes
// nothing then; numbers in it that are out of range make it uninformative. Answers
// are refused as Invalid or NotFound, naming the field. No answer holds a NaN.
//
// # Cost
//
// On one core of a 2020s server Observe takes 30 µs for a job of two stages and a type,
// Utility 3 µs, Estimate 1 ms; see the benchmarks. A snapshot has some 200 bytes for a
// kind, and up to 1 kB for each set of similar stages or jobs.
package memory
