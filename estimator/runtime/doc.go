// Package runtime estimates how long a job runs. The estimate is a distribution, from observed similar jobs and from
// the user's own limit.
//
// # Model
//
// There are eleven levels of similarity. The narrowest has the runs of the same command by the same user with the same
// size and limit. Wider levels have all runs of the user. In some of them, a run counts by its time in seconds; in
// others, by its time divided by its limit. The widest has the runs of all users. In each level, a context is a set of
// similar jobs, for example all jobs of alice with the command sort. It keeps the 24 runs that ended last. In a context
// of one user, each run counts 0.8 times as much as the next later run. A context of all users has one run of each, and
// all count the same.
//
// The estimate is a mixture of the job's contexts. Their weights are learned. When a job has ended, the median of each
// context is compared with its run time. If a level's median was wrong by a factor of e^loss, on average over the
// user's latest jobs, its weight is e^(−loss/least loss), where least loss is the loss of the best level. Each step to
// a wider level reduces the weight by a tenth. It is also reduced if the context has few runs. A new user starts with
// the mean losses of the site, which count as two losses of the user.
//
//   - Predictor.Observe learns from a run that ended. Predictor.Estimate returns the distribution for a job.
//   - Distribution has quantiles, a mean, and samples with equal probabilities, with which a scheduler can plan.
//   - Distribution.Robust is the quantile under the worst distribution within a Kullback-Leibler ball around the
//     estimate. Distribution.Divergence is the default radius of the ball: it is larger if there are fewer runs.
//
// The user's limit bounds every answer, and is itself a possible run time. Its probability is 1/16 after one run, and
// each further run divides it by 4. So after one run the robust estimate is the limit. Without any run the answer is
// the limit.
//
// # Shapes and units
//
// Times are in seconds, from 0 to 1e12; only the end of a run is in microseconds. Any other quantity that is not
// negative can be estimated too. The argument of New is a difference of the quantity that is too small to matter.
//
// # Guarantees
//
// Estimates use only earlier observations. If runs that ended at different times are observed in another order, a
// user's contexts are the same, but the trust in the levels changes slightly. A context of all users has one run of
// each user, so a user with many runs does not decide what others are told. (TestNobodyDecidesForOthers: two of forty
// accounts lie as far as they can, a hundred times in a row. The median and the 90 % quantile that a newcomer is told
// do not change. If each run counted, both would be the lie.) Everything else that a user is told comes from runs of
// the same user. Robust is the quantile at δ = 0, never falls as δ grows, and never exceeds the largest time of the
// distribution. No answer is NaN.
//
// # Errors
//
// Run times and limits that are negative, not numbers or too large are refused as Invalid, and nothing changes.
// Estimate returns nil if nothing is known: no run was observed, and the job has no limit.
//
// # Cost
//
// On one core of a 2020s server Observe takes 13 µs, and Estimate at most 100 µs, when all contexts of a job are full.
// A context takes up to 2 kB. 50,000 are kept; the least recently used is removed first.
//
// # Evidence
//
// TestTraces (go test -run Traces -traces DIR -v, where DIR is a directory of logs of the Parallel Workloads Archive)
// estimates each job when it is submitted, from jobs that had ended by then. "Ours" is the median. "Last two" is the
// mean of the user's last two ended jobs, up to the limit. Errors are means over all jobs that have a limit: in
// seconds, and relative to the run time or a minute, whichever is longer. The robust demand is the 90 % quantile that
// Distribution.Robust returns with the default radius. "Enough" is the part of the jobs that ran no longer than this;
// run times are cut at the limits.
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
// LLNL-Thunder has no waiting times; its jobs are assumed to have begun when they were submitted. In RICC two users
// have half of the jobs; there the robust demand is enough for fewer than nine jobs in ten.
//
// # Source
//
// D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated predictions rather than user runtime
// estimates", for the mean of the last two. The mixture by exponential weights comes from prediction with expert
// advice. The worst distribution in a ball comes from Z. Huang et al., "RUSH: A robust scheduler to manage uncertain
// completion-times in shared clouds"; the radius is from A. Owen, "Empirical likelihood ratio confidence intervals for
// a single functional".
package runtime
