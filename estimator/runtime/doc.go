// Package runtime estimates how long a job runs: not one number but a
// distribution, from what was observed of similar jobs and from the bound that
// the user gave.
//
// # Model
//
// Jobs are similar in eleven ways, called levels: from the runs of the same
// command by the same user, of the same size and limit, by way of all runs of
// that user and of what these took of their limits, to everybody's runs. For each
// level and each thing its jobs have in common, a context keeps the last 24 runs by
// when they ended: of one user each counting 0.8 as much as the one after it, of
// everybody the last one of each user, counting the same.
//
// The estimate is a mixture of the contexts that a job is in. How much each has to
// say is learned: whenever a job has ended, the median of each context is compared
// with its run time, and a level whose median was off by a factor of e^loss, on
// average over the user's latest jobs, has a say of e^(−loss/least loss), with a
// tenth less for each narrower level, and less the fewer runs it has. A new user
// starts with the site's losses, which count as two of the user's own.
//
//   - Predictor.Observe takes in what ended, Predictor.Estimate answers.
//   - Distribution has quantiles, a mean, and samples that are equally likely,
//     which is what a scheduler plans with.
//   - Distribution.Robust is the quantile under the worst distribution within a
//     Kullback-Leibler ball around the estimate. Distribution.Divergence is the
//     ball's radius where none is given: the fewer runs, the larger.
//
// The user's limit bounds every answer, and is itself a possible run time. Its
// probability is 1/16 after one run, and a quarter of the one before after each run more, so that
// the robust demand of what was seen once is the limit. It is the answer where
// nothing was observed.
//
// # Shapes and units
//
// Times are in seconds, from 0 to 1e12, except when a run ended, in microseconds.
// Anything else that is not negative can be estimated so: the grain is the
// difference that does not matter, in its unit.
//
// # Guarantees
//
// Estimates use nothing but what was observed before them. The order in which
// runs that ended at different times are observed does not matter to what a
// user's context holds; to how far levels are trusted it does, a little. What is
// learned of everybody's runs holds one run of each user: nobody's burst decides
// what others are told (TestNobodyDecidesForOthers: when two of forty accounts lie
// as far as they can, and do so a hundred times in a row, the median and the 90 %
// quantile that a newcomer is told do not move; without the cap both are the lie).
// Everything else that a user is told rests on runs of the same user. Robust is the
// quantile at δ = 0, never falls as δ grows, and never exceeds the largest time of
// the distribution. No answer is NaN.
//
// # Errors
//
// Run times that are negative, not numbers or too large, and limits that are, are
// refused as Invalid; nothing changes then. Estimate returns nil where nothing
// is known at all: no run was observed, and the job has no limit.
//
// # Cost
//
// On one core of a 2020s server Observe takes 13 µs and Estimate, once all contexts
// of a job are full, 100; less before. A context takes up to 2 kB, and 50,000 are
// kept, the longest untouched going first.
//
// # Evidence
//
// TestTraces, go test -run Traces -traces DIR -v with DIR a directory of logs of
// the Parallel Workloads Archive: each job is estimated when it is submitted, from
// jobs that had ended by then. The estimate is the median; last two is the mean
// of the user's last two jobs that ended, up to the limit. Errors are means over
// all jobs that have a limit: absolute in seconds, and relative to the run time or
// a minute, whichever is more. Enough is the part of jobs, cut at their limits,
// that ran no longer than the robust demand for 0.9.
//
//	                         absolute error, s           relative error
//	log              jobs    limit last two   ours    limit last two   ours  enough
//	DAS2-fs1       39,356    24218     1368   1136   116.12     5.00   2.77    0.98
//	HPC2N         202,871    27974    13302  10971   181.10    37.58  29.88    0.95
//	KTH-SP2        28,476     4829     5263   4435    28.34    10.67  10.08    0.99
//	LLNL-Thunder   38,591     3467      146    117    52.62     1.05   0.52    0.99
//	LPC-EGEE      220,695    80187     3068   2608   769.29     5.43   3.05    0.96
//	RICC          447,792   124711    13827  11550   397.67    29.19  25.10    0.88
//	SDSC-DS        85,045    10650     5004   4424    55.47    13.55  11.27    0.98
//	SDSC-SP2       54,009     9466     4123   3547    47.54    10.28   8.80    0.99
//
// LLNL-Thunder says nothing about waits; there, jobs are taken to have begun when
// they were submitted. In RICC, half of whose jobs are two users', the robust demand
// falls short of the nine in ten that it is for.
//
// # Source
//
// D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated
// predictions rather than user runtime estimates", for the mean of the last two.
// The mixture by exponential weights comes from prediction with expert advice.
// The worst distribution in a ball comes from Z. Huang et al., "RUSH: A robust
// scheduler to manage uncertain completion-times in shared clouds"; the radius is
// from A. Owen, "Empirical likelihood ratio confidence intervals for a single
// functional".
package runtime
