// Package embedded runs a whole site in one process: a NATS server with
// JetStream, the auctioneer's and the bank's replicas with a durable log each,
// an estimator, and the node agents. With [Config].Hosts it runs one host's
// share of a site that is spread over several processes.
//
// Replicas of one process are connected in memory. Those of several hosts, and their
// NATS servers, know one another by certificates that follow from the site's keys; the
// runbook has a table of every port.
//
// The parts are the ones that production runs, and they talk only over the
// NATS server: what is different is that one configuration starts them all and
// that one state directory holds everything they keep:
//
//	<state>/lock           held while a process uses the directory
//	<state>/format         the version of the form of the directory
//	<state>/shape.json     the replicas and the kind of log it was made for
//	<state>/pprof.sock     pprof, with [Config].Profile
//	<state>/backup.sock    where a running site hands out backups
//	<state>/depot/         files of jobs that a restore left, until the depot has them
//	<state>/clock.json     the site's time against the machine's, for the next start
//	<state>/site.json      where the site listens, for the command line
//	<state>/keys/          the seeds that credentials are signed with
//	<state>/creds/         a credentials file for each account
//	<state>/peers.json     what the bank was last told of the configured peers
//	<state>/sites/NAME/    the state of another site that was started along with it
//	<state>/nats/          JetStream
//	<state>/auctioneer/N/  the log and snapshots of a replica
//	<state>/bank/N/
//	<state>/nodes/NAME/    an agent's tasks and their output
//
// [Start] returns when both groups have a leader and the configured accounts
// are open. Starting again with the same directory continues where the site
// stopped, or was killed.
//
// # Other sites
//
// With [Config].Peers the NATS server is linked to those of other sites as a leaf
// node or as the hub of one: each peer has an account of its own in it, from which
// and into which pass the requests that sites make of one another and nothing else
// (see deploy/identity). The bank is told of a peer when the configuration first
// names it, and of what the configuration changes afterwards. [StartSites] starts
// several sites in one process that are peers of one another, for a first look.
package embedded
