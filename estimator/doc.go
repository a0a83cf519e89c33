// Package estimator is the actor that learns from ended jobs: what they are worth to their users, how long they take,
// and how the declared types are distributed. It answers requests for the utility function of a job submitted with only
// a budget, for run times and completion times, and for types drawn from a job profile class.
//
// # Parts
//
// Package memory keeps what was learned, and makes all answers. It is pure. Packages utility, runtime and density do
// its arithmetic, and are pure too. This package reads the site's stream of observations into a memory, answers
// requests from the memory through the NATS micro framework, and saves it.
//
// # What a job's utility was
//
// No job says what it was worth after it ran. But its speed can be observed: the slot time of its tasks, divided by the
// time from its submission to its end. For runs of the same work, this is the inverse of the response time, multiplied
// by a constant. Ding et al. propose the inverse of the response time in section 5. With the slot time in it, runs on
// more input and on less input can be compared. Only completed jobs count. The speed is explained by the average job
// resource: the share of each class that the allocation vectors gave the job, averaged over the time in which it had
// tasks pending there. A share averaged over the whole time would explain nothing: it is, up to a constant factor, the
// slot time divided by the whole time, and that is the observed speed itself. The linear form is learned, because the
// speed is in proportion to all shares together. The log form would need utilities that can be negative.
//
// # Streams, snapshots, instances
//
// The stream can be read again from its beginning at any time: a repeated observation changes nothing. A snapshot is
// written once a minute and at the end. After a restart, reading continues with the last message in the snapshot. If
// this message is missing from the stream, or another one has its number, the stream is a different one, and is read
// from its beginning. A snapshot that is damaged, or was made for other job profile classes, is not used. If a site
// begins again, with job numbers from 1, its estimators' directories must be removed too; candor up --fresh does this.
//
// Several estimators of a site share its requests, as members of one queue group, but each reads the whole stream. So
// any instance can answer, and nothing is lost while one instance remains. If they divided the stream too, no instance
// would know a whole class. Two instances that have read the same messages give the same answer, except for rounding.
//
// # Who is asked what
//
// Users get answers about their own jobs, services and operators about all jobs. If a user has few jobs, the latest run
// times of all users are part of the answer, without names. Job profile classes are shown to all users, but types are
// drawn only for services and operators.
//
// The auctioneer asks while the bank sets the budget aside, and waits 20 ms. Without an answer the job gets the
// default. So a slow or missing estimator never stops a job.
//
// # What liars can do
//
// The liars run jobs or declare types that mislead most. They have 5 % of the accounts, and are five times as active as
// others. Utilities are learned only from a user's own runs, so lies do not change them for others. The table says how
// far the lies move each answer:
//
//	what moves                                  honest   screened   not screened
//	utility weights of others                        –          0              0
//	run time told to a user with runs of it       100 s      100 s          100 s
//	run time told to a newcomer                   100 s      100 s     1000000 s
//	types, lies in the template's corner, nats    0.015      0.016          1.325
//
// The first line is TestLiarsMoveTheirOwnWeightsOnly. The run times are from runtime.TestNobodyDecidesForOthers, in
// which the last hundred jobs are lies. Divergences from the truth of the types are from density.TestPoisoning after
// 2000 turns; package density has the numbers for other lies. "Screened" means that each account's weight is capped and
// outliers are left out. "Not screened" means that neither is done.
package estimator
