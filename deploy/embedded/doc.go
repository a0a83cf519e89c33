// Package embedded runs a whole site in one process: a NATS server with JetStream, the replicas of the auctioneer and
// the bank with a durable log each, an estimator, and the node agents. With [Config].Hosts it runs one host's share of
// a site that is spread over several processes.
//
// Replicas in one process are connected in memory. Replicas and NATS servers on several hosts recognise one another by
// certificates that are derived from the site's keys. The runbook has a table of every port.
//
// The parts are the same as in production, and they talk only over the NATS server. One configuration starts them all,
// and one state directory holds everything they keep:
//
//	<state>/lock           held while a process uses the directory
//	<state>/format         version of the directory's format
//	<state>/shape.json     the replicas and the kind of log that the directory was made for
//	<state>/pprof.sock     pprof, with [Config].Profile
//	<state>/backup.sock    the socket from which a running site's backup can be read
//	<state>/depot/         files of jobs from a restore, until the depot has them
//	<state>/clock.json     offset of the site's time from the machine's, for the next start
//	<state>/site.json      where the site listens, for the command line
//	<state>/keys/          the seeds that credentials are signed with
//	<state>/creds/         a credentials file for each account
//	<state>/peers.json     the peers as the configuration last gave them to the bank
//	<state>/sites/NAME/    the state of another site that was started together with it
//	<state>/nats/          JetStream
//	<state>/auctioneer/N/  the log and snapshots of a replica
//	<state>/bank/N/
//	<state>/nodes/NAME/    an agent's tasks and their output
//
// [Start] returns when both groups have a leader and the configured accounts are open. Starting again with the same
// directory continues where the site stopped, or was killed.
//
// # Other sites
//
// With [Config].Peers the NATS server is linked to the servers of other sites, as a leaf node or as the hub. Each peer
// has its own account in the server. Only the requests between sites pass through that account (see deploy/identity).
// The bank is told of a peer when the configuration first names it, and of later changes of the configuration.
// [StartSites] starts several sites in one process that are peers of one another, to try this out.
package embedded
