// Package archive keeps the records of ended jobs on the disk of a replica, once they have left
// the job book. The book has the latest records alone, so that its memory does not grow with
// the jobs that a site has run.
//
// # Replicas
//
// Each replica writes its own archive, while it applies the log: which record leaves the
// book, and when, follows from the log, and the record of a job is the same everywhere. A replica that starts
// again applies the end of its log again; a job whose record is there is not written twice. A replica
// that was brought up to date by a snapshot lacks the records that left the book meanwhile. It copies the
// leader's files, and takes from them what it lacks. The leader alone answers, from its own archive.
// Until a leader that lacks records has them, its answers say since when its archive has all.
//
// # Files
//
// A directory "archive" beside the replica's log:
//
//	NNNNNNNNNN.jobs  records, appended until the file has 4 MiB; the numbers only rise
//	contents         of each full file the jobs that it has, with a checksum
//
// A record has the job's number, its line in a list, all else that the book knew of the job, and a
// checksum. To find a job, the replica knows from the contents which file to read; a list reads
// the files that can have jobs of the list, the newest first, and stops when its page is full.
// Without the contents, which can be removed, a start reads all files.
//
// # Bounds
//
// A full file is removed when the last of its jobs has ended longer ago than the retention, and the oldest
// file when all have too many bytes. In memory are the numbers of the jobs of each file, as
// spans, and where the records are in the four files that were looked into last.
//
// # Durability and damage
//
// Nothing is synced when it is written. Before the log is cut the files are synced; until then the log has
// the commands by which the records left the book. A file that a loss of power cut loses
// what stands behind its last whole record, and the log brings it back.
//
// A read that fails because too many files are open, or for another reason that says nothing of the
// file, loses no record: the answer is to ask again. After an input/output error the read is repeated
// once. A file whose sync failed is synced again before the next image.
//
// All files are read every hour ([Archive.Examine]). A record with a wrong checksum is named in the log, counted, and left out, and the answer says so. Where the disk
// is full the record is left out, and the replica goes on applying. What is missing for
// either reason, or because a file is gone, is copied from the leader; where the leader does not have it
// either, it is not asked for again while the same replica leads, and the answers say since when the
// archive has all. Records whose retention is over are not missed.
package archive
