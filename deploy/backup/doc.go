// Package backup defines the form of a site's backup: a directory of files, and the stream in
// which a running site sends them.
//
// # Files
//
//	SHA256SUMS             the checksum of every other file, as sha256sum -c reads it
//	backup.json            of what site, when, by which program; see [About]
//	shape.json             the replicas that the state is for
//	auctioneer/saved.json  how far the auctioneer's state goes, and its group
//	auctioneer/state       the state
//	auctioneer/archive/    the records of ended jobs that are no part of the state any more
//	bank/saved.json, bank/state
//	bank/history/          the bank's journal up to there, and its checkpoints
//	depot/ACCOUNT/         the files of jobs, in pieces
//	estimator/memory       what the estimator has learned
//	keys/, creds/          as in the state directory, and with them all that the site may do
//	peers.json, users.json
//
// # Whole or not at all
//
// A backup is written into a temporary directory, which is renamed when every file is on the
// disk. So a directory with the requested name is complete. A reader checks every file first.
//
// # What fits what
//
// The bank's state is later than the auctioneer's, the depot's files are later than both, and
// the keys are the latest. The checkpoints are earlier than the bank's state. This order is
// right because:
//
//   - A job is entered after its budget is held and after its files were sent, so the hold
//     and the files of every job in the auctioneer's state are there, or the hold was
//     resolved meanwhile. Holds of jobs that are not there lapse, like the holds of submissions
//     that nobody finished. Who submits such a job again, under its key, gets its hold.
//   - What the auctioneer asks the bank for has identifiers of its own, and the bank does
//     it once. What the auctioneer's state says is still to be done is asked for again,
//     and answered as it was. A job that ended between the two is run again from where the
//     auctioneer's state has it, and what it owes was charged already: the second charge
//     is answered with the first, or refused if it differs. In the other order jobs would
//     be without holds and charges lost.
//   - The archive is later than the auctioneer's state: a record that left the state is there, and
//     one that is in both is not written again. The estimator's memory names the observations
//     up to which it has read, and reads on from there where the site still has them.
//   - What the journal says of keys is true of the keys directory, which may have more.
//   - Every checkpoint is of a record that the journal has.
package backup
