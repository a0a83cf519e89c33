// Package history keeps a bank's journal in files: the [ledger.Store] of a
// replica that runs for long.
//
// # Layout
//
// A directory beside the replica's log holds one file for each full segment of
// the journal, named for its first record. A file is never changed. It has the
// records' bytes, then a table (where each record ends, its CRC-32C, the hash
// of its identifier, and the chain's hash before and after), then the table's
// length: about 16 bytes for a record besides its own. The records since the
// last full segment are in the replica's memory, in its snapshots, and, for
// those who read the directory of a replica that is stopped, in the file
// "tail", written at each snapshot and at a regular stop. "checkpoints" has the
// signed checkpoints, one JSON document in a line.
//
// # Durability
//
// Nothing here is synced when it is written: until the next snapshot the log
// has the commands that lead to it, and a replica that starts again applies
// them to its last snapshot and writes the same files anew, byte by byte,
// whatever a crash left of them. A snapshot first syncs the files that it
// builds on, and the directory, and fails if it cannot: then the log is not
// cut. So there is no torn end to look for: a file is either vouched for by a
// snapshot, with its digest, or written again. On a full disk segments wait in memory:
// the books go on, and there is no snapshot before there is room.
//
// # Snapshots between replicas
//
// A snapshot has the accounts, the pending holds, the records since the last
// full segment, and of each full segment only its number, hash and digest: its
// size does not grow with the history. A replica that is given the snapshot of
// another fetches the files it lacks, and only those, from the replica that
// leads, while it restores. Streaming the files inside the snapshot would be
// simpler, but Raft writes a snapshot to disk each time, at every replica and
// again at the receiver, so every one of them would be as long as the whole
// history, for a receiver that mostly lacks the last few files. What is fetched
// is checked against the digests in the snapshot, so it does not matter whom it
// comes from. The same path repairs a replica that lost a file. A leader that lost one
// lets another replica lead, and fetches the file from that one.
//
// # Memory
//
// For each file some 150 bytes stay in memory, and up to [openFiles] are kept
// open. Records are read by position when they are needed: for a repeated
// identifier, for a statement. What the ledger itself keeps for each identifier
// is 25 to 40 bytes, taken from the tables at start, without reading the records.
package history
