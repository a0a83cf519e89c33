// Package history keeps a bank's journal in files. It is the [ledger.Store] of a replica with a disk.
//
// # Layout
//
// A directory next to the replica's log has one file for each full segment of the journal, named for its first record.
// A file is never changed. It has the records' bytes, then a table, and then the table's length. The table has, for
// each record, its end, its CRC-32C and the hash of its identifier, and the heads of the chain before and after. It
// takes about 16 bytes for each record. Records after the last full segment are in the replica's memory and snapshots.
// They are also in the file "tail", for readers of a stopped replica's directory; it is written at each snapshot and at
// a regular stop. The file "checkpoints" has the signed checkpoints, one JSON document on each line. The files
// "checked-0" and "checked-1" have the last two images whose records the replica has checked ([Checked]).
//
// # Durability
//
// Files are not synced when they are written: until the next snapshot, the log still has the commands that wrote their
// records. A replica that restarts applies these commands to its last snapshot and writes the same files again, byte by
// byte, whatever a crash left of them. A snapshot first syncs its files and the directory, and fails if it cannot; then
// the log is not cut. On a full disk, segments wait in memory: the bank continues to work, but makes no snapshot until
// there is room.
//
// # Snapshots between replicas
//
// A snapshot has the accounts, the pending holds, the records after the last full segment, and only the number, hash
// and digest of each full segment. So its size does not grow with the history. A replica that receives a snapshot
// fetches only the files it lacks, from the leader, while it restores. Streaming the files inside the snapshot would be
// simpler, but Raft would write the whole history to disk with each snapshot, although a receiver mostly lacks only the
// last files. The digests in the snapshot check what is fetched, so any replica may give it. A replica that lost a file
// repairs it in the same way. A leader that lost one lets another replica lead, and fetches the file from that one.
//
// # Memory
//
// Each file takes about 150 bytes of memory, and up to [openFiles] files are kept open. Records are read by position
// when they are needed, for a repeated identifier or a statement. The ledger itself keeps 25 to 40 bytes for each
// identifier, read from the tables at the start without reading the records.
package history
