// Package depot is the service that stores the files of jobs: the inputs that users send, and the outputs that tasks
// leave.
//
// # What is kept
//
// Each account has its own bucket in the site's JetStream, created when it is first needed:
//
//	<digest>                        says that the file with this SHA-256 is complete, and its size
//	<digest>.<n>                    its nth piece, from 0, of job.PieceSize bytes
//	outputs.<job>.<stage>.<task>    what the latest attempt of a task left
//
// A file is identified by its content: what was sent once is not sent again, however many jobs use it. A file is stored
// when all its pieces have arrived and match the digest.
//
// # Jobs between sites
//
// The files of visiting jobs are in one bucket for each home site; lists of outputs are under the job's number at home.
// An input is fetched from the home site's depot, piece by piece, when a task first needs it, and kept for later tasks.
// The owner reads outputs through the home site. A peer reads the inputs of the jobs that it runs, and the outputs of
// its own jobs' tasks. The numbers of requests to a peer and from a peer at the same time are limited.
//
// # Retention
//
// A file is removed when it is older than Config.Retention. If somebody sends a file again after half that time, it is
// stored again; so a file that is reported as stored stays for at least half of this time. A bucket has at most
// Config.Quota bytes; above it, new pieces are refused as Exhausted until old files are removed.
//
// # Permissions
//
// Users ask under their own names and reach their own buckets. While a job's market keeps its outputs back (hand_over:
// deadline), the job's owner cannot list them. Operators may read the files of another account; each access is logged.
// An agent reaches the bucket of a task's owner if the auctioneer says that the agent was given this task. It may read
// the inputs of the task's job. While there is no later attempt, it may also store files and report the outputs. Only
// services talk to JetStream itself, because JetStream sends messages to any subject that a request names, even one on
// which the requester may not publish.
//
// Several replicas may serve at the same time, because their only state is a cache.
package depot
