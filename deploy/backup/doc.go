// Package backup defines the form of a site's backup: a directory of files, and the stream in which a running site
// sends them.
//
// # Files
//
//	SHA256SUMS             the checksum of every other file, as sha256sum -c reads it
//	backup.json            the site, the time and the program; see [About]
//	shape.json             the replicas that the state is for
//	auctioneer/saved.json  the last log entry in the auctioneer's state, and the group's replicas
//	auctioneer/state       the state
//	auctioneer/archive/    the records of ended jobs that have left the state
//	bank/saved.json, bank/state
//	bank/history/          the bank's journal up to this state, and its checkpoints
//	depot/ACCOUNT/         the files of jobs, in pieces
//	estimator/memory       what the estimator has learned
//	keys/, creds/          as in the state directory; whoever has them can act as the site
//	peers.json, users.json
//
// # Complete or absent
//
// A backup is written into a temporary directory, which is renamed when every file is on the disk. So a directory with
// the requested name is complete. A reader checks every file first.
//
// # Order of the parts
//
// The bank's state is later than the auctioneer's, the depot's files are later than both, and the keys are the latest.
// The checkpoints are earlier than the bank's state. This order is right because:
//
//   - The auctioneer enters a job after its budget is held and its files were sent. So the backup has the hold and the
//     files of every job in the auctioneer's state, unless the hold was resolved meanwhile. Holds of jobs that are not
//     in the state expire, like holds of unfinished submissions. A user who submits such a job again with its key gets
//     the same hold.
//   - Each request of the auctioneer to the bank has an identifier, and the bank carries it out once. After a
//     restoration, the auctioneer repeats open requests and gets the first answers. A job may have ended between the
//     two states. The job then runs again after the restoration, although it was already charged. The second charge
//     gets the answer of the first charge, or is refused if it differs. In the other order, jobs would lack holds, and
//     charges would be lost.
//   - The archive is later than the auctioneer's state. So a record that has left the state is in the archive, and a
//     record that is in both is not written again. The estimator's memory says which observation it has read last, and
//     continues from there if the site still has the later observations.
//   - The keys directory has all keys that the journal names, and perhaps newer ones.
//   - Every checkpoint describes a record that the journal has.
package backup
