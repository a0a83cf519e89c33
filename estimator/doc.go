// Package estimator is the actor that learns from ended jobs: what they are worth to their
// users, how long they take, and how the declared types are distributed. It answers requests
// for the utility function of a job submitted with only a budget, for run times and completion
// times, and for types drawn from a job profile class.
//
// # Parts
//
// Package memory has what was learned and makes all answers. It is pure, as are the packages
// utility, runtime and density, which do its arithmetic. This package reads the site's stream
// of observations into a memory, answers requests from it through the NATS micro framework, and
// saves it.
//
// # What a job's utility was
//
// No job says what it turned out to be worth. Its speed can be observed: the slot time of its
// tasks, divided by the time from its submission to its end. For runs of the same work this is
// the inverse of the response time up to a factor, which is the measure that Ding et al.
// propose in section 5. Measuring it in work lets runs on more and on less input be compared.
// Only completed jobs count. What explains the speed is the average job resource: the share of
// each class that the allocation vectors gave the job, averaged over the time in which it had
// work waiting there. A share from beginning to end would explain nothing: whatever the
// weights, it equals the work done over the time taken. The linear form is learned, since speed
// grows in proportion to all shares together; the log form would need utilities that may be
// negative.
//
// # Streams, snapshots, instances
//
// The stream can be read again from its beginning at any time: a repeated observation changes
// nothing. A snapshot is written once a minute and at the end. It saves reading the stream
// again, and has what the stream no longer has. After a restart, reading continues with the
// last message that the snapshot knows. If another message has its place, or none, the stream
// is not the same one, and is read from its beginning. A snapshot that is damaged, or was made
// for other job profile classes, is not used. If a site begins anew, with job numbers from 1,
// its estimators' directories must be removed too; candor up --fresh does this.
//
// Several estimators of a site share its requests, as members of one queue group, but each
// reads the whole stream. If they divided the stream too, each would save a few microseconds a
// job, but every answer would need the one instance that knows the account, and none would know
// a whole class. As it is, any of them can answer, and nothing is lost while one remains. Two
// that have read the same messages give the same answer, except for rounding.
//
// # Who is asked what
//
// Users get answers about their own jobs, services and operators about everybody's. If a user
// has few jobs, everybody's latest run times are part of the answer, without names. Classes are
// shown to all; types are drawn only for services and operators.
//
// The auctioneer asks while the bank makes the hold, and waits 20 ms; without an answer the job
// gets the default. So a slow or missing estimator reduces precision and never stops a job.
//
// # What liars can do
//
// The liars run or declare what misleads most. They have 5 % of the accounts and are five times
// as active as others. Utilities are learned only from a user's own runs, so the runs of others do
// not change. Run times and types:
//
//	what moves                                  honest   screened   not screened
//	utility weights of others                        –          0              0
//	run time told to a user with runs of it       100 s      100 s          100 s
//	run time told to a newcomer                   100 s      100 s     1000000 s
//	types, lies in the template's corner, nats    0.015      0.016          1.325
//
// The first line is TestLiarsMoveTheirOwnWeightsOnly. Run times are from
// runtime.TestNobodyDecidesForOthers, where the liars end with a hundred lies in a row.
// Divergences from the truth of the types are from density.TestPoisoning after 2000 turns;
// package density has the numbers for other lies. "Screened" is with the cap on an account's
// weight and with the screening of outliers, "not screened" without both.
package estimator
