// Package archive keeps the records of ended jobs on a replica's disk after they left the job book, whose memory is
// limited.
//
// # Replicas
//
// Each replica writes its own archive while it applies the log. The log decides which record leaves the book, and when;
// a job's record is equal on all replicas. A replica that restarts applies the end of its log again, and does not write
// a record twice. A replica that was brought up to date by a snapshot lacks the records that left the book in the
// skipped part of the log. It copies the leader's files and takes the missing records from them. Only the leader
// answers, from its own archive.
//
// # Files
//
// The directory "archive" next to the replica's log has:
//
//	NNNNNNNNNN.jobs  records, appended until the file has 4 MiB; the numbers in the names increase
//	contents         the jobs of each full file, with a checksum
//
// A record has the job's number, its line in a list, everything else that the book knew about the job, and a checksum.
// The file contents tells a replica which file has a job. A list reads the files that can have its jobs, newest first,
// and stops when its page is full.
//
// # Bounds
//
// A full file is removed when its last job ended longer ago than the retention; the oldest files are removed until the
// total size is below the limit. The archive keeps in memory the job numbers of each file, as intervals, and the
// positions of the records in the four files that were read last.
//
// # Durability and damage
//
// Records are not synced when they are written. Before the log is cut, the files are synced; until then the log has the
// commands that removed the records from the book. If a loss of power cuts a file off, everything after the last
// complete record is lost, and the log restores these records.
//
// If a read fails because too many files are open, or for another temporary reason, no record is lost: the caller is
// told to ask again. After an input/output error the read is repeated once. A file whose sync failed is synced again
// before the next image.
//
// All files are read every hour ([Archive.Examine]). A record with a wrong checksum is logged, counted and omitted, and
// answers say so. If the disk is full, records are omitted, and the replica continues. Records that are missing for
// either reason, or because a file is gone, are copied from the leader. If the leader lacks them too, they are not
// asked for again while it leads. Answers say from which time on the archive is complete. Records whose retention is
// over do not count as missing.
package archive
