// Package estimator is the actor that learns from the jobs that have ended. It
// reads the site's stream of observations from its beginning at each start, so
// that it may be lost and started anew without loss, and several may run at
// once; each keeps, in bounded memory, the latest observations of each kind of
// job: an account and the name it gives its jobs.
//
// It is asked what a job submitted without a utility function is worth. It
// does not estimate that from the observations it holds, and says so: the
// answer is the default, by which a share of each class the job uses counts
// the same, and it rests on 0 runs.
package estimator
