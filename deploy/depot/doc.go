// Package depot is the service that keeps the files which travel with jobs: the
// inputs that a user sends along, and the outputs that tasks leave.
//
// # What is kept
//
// Each account has a bucket of its own in the site's JetStream, made when it is
// first needed:
//
//	<digest>                        that the file of this SHA-256 is there; its size
//	<digest>.<n>                    its nth piece, from 0, of messages.PieceSize bytes
//	outputs.<job>.<stage>.<task>    what the latest attempt of a task left
//
// Files are known by their content: what was sent once is not sent again, however
// many jobs use it. A file counts as there when all its pieces have come and have
// been found to be what the digest says.
//
// # Jobs between sites
//
// The files of visiting jobs are in one bucket for each home site, lists of outputs under
// the job's number at home. An input is fetched from the home site's depot, piece by piece,
// when a task first wants it, and kept for the tasks after it. The owner reads outputs by
// way of the home site. A peer reads the inputs of the jobs that it runs, and what tasks of
// its own jobs left; requests to a peer and of a peer have a few places each.
//
// # For how long
//
// What is kept goes when it is older than Config.Retention. A file that somebody
// sends again after half that time is kept anew, so that whoever is told that a
// file is there has at least half the retention left to use it. A bucket holds no
// more than Config.Quota bytes; beyond, what comes is refused as Exhausted until
// something has grown old.
//
// # Who may
//
// Users ask under their own names and reach their own buckets. While the market of a job
// keeps its outputs (hand_over: deadline), its owner is not told which they are. Operators may name
// another account to read from; each time the log says who read what of whom. An
// agent reaches
// the owner's bucket of a task that the auctioneer says it was given: it may read
// the inputs of the task's job, and store files and say what the task left for as
// long as no later attempt exists. Nobody but services speaks to JetStream itself:
// a server delivers what it keeps to any subject that the request for it names,
// also to one on which the requester may not publish.
//
// Several replicas may serve at the same time; none keeps anything of its own but
// what can be asked again.
package depot
