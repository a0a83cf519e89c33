// Package estimator is the actor that learns from the jobs that have ended: what
// they are worth to those who submit them, how long they take, and how the types
// that users declare are distributed. It is asked for the utility function of a
// job submitted with a budget alone, for run times and completion times, and for
// types drawn from a job profile class.
//
// # Parts
//
// Package memory is what was learned, and makes all answers; it is pure, as are
// the packages that do its arithmetic: utility, runtime and density. This package
// reads the site's stream of observations into a memory, answers from it through
// the NATS micro framework, and saves it.
//
// # What a job's utility was
//
// No job says what it turned out to be worth. What can be observed is how fast it
// went: the slot time that its tasks took, over the time from its submission to
// its end. For runs of the same work that is the inverse of the response time up to
// a factor, which is the measure that Ding et al. propose in section 5; dividing by
// the work lets runs on more and on less input be compared. Only jobs that
// completed count. The share that explains it is the average job resource, what the
// allocation vectors in force gave the job of each class, averaged over the time in
// which it had work waiting there. A share from beginning to end would explain
// nothing: it is the work done over the time taken, whatever the weights. The form
// learned is the linear one, since speed grows in proportion to all shares
// together; the log form would need utilities that may be negative.
//
// # Streams, snapshots, instances
//
// The stream can be read again from its beginning at any time: what was learned
// before changes nothing, and neither does an observation that comes twice. A snapshot is
// written once a minute and at the end. It saves reading the stream again, and keeps what
// the stream no longer has. After a restart the stream is read on from the last message
// that the snapshot knows. If another message comes in its place, or none, the stream is
// not the one that was read before, and is read whole. A snapshot that is damaged, or was
// made for other job profile classes, is not used. A site that is started anew, with job
// numbers from 1, needs its estimators' directories removed too, which candor up
// --fresh does.
//
// Several estimators of a site share its requests, as members of one queue group,
// but each reads the whole stream. Sharing the stream as well would save each a few
// microseconds a job, and cost that every answer needs the one instance that has
// the account, and that a class is known to none; as it is, any of them answers,
// and the loss of all but one loses nothing. Two that have read the same number of
// messages give the same answer, to rounding.
//
// # Who is asked what
//
// Users are told of their own jobs, services and operators of everybody's. Where a
// user has few, times of everybody's last runs are part of the answer, without
// names. Classes are told to all; types are drawn for services and operators alone.
//
// The auctioneer asks while the bank makes the hold, and gives the estimator 20 ms;
// without an answer the job gets the default. So an estimator that is slow or gone
// costs precision, never a job.
//
// # What liars can do
//
// Liars run or declare what misleads most, with 5 % of the accounts, five times as
// often as others. Utilities are learned from a user's own runs alone: of others
// nothing moves. Of run times and types:
//
//	what moves                                  honest   screened   not screened
//	utility weights of others                        –          0              0
//	run time told to a user with runs of it       100 s      100 s          100 s
//	run time told to a newcomer                   100 s      100 s     1000000 s
//	types, lies in the template's corner, nats    0.015      0.016          1.325
//
// The first line is TestLiarsMoveTheirOwnWeightsOnly; run times are from
// runtime.TestNobodyDecidesForOthers, where the liars end with a hundred lies in a
// row; divergences from the truth of the types are from density.TestPoisoning, after
// 2000 turns, which package density has for other lies too. Screened is with the cap on an account's influence and the screening
// of what fits no others, not screened without both.
package estimator
