// Package tree measures, gives away and removes directories that hostile programs filled,
// and in which they may still work.
//
// # The walk
//
// One walk serves all three. It opens each entry relative to the descriptor of its
// directory and follows no symbolic link, so that no path is too long and no name is
// special. It goes depth first without recursion, and holds the last [window] directories
// open. The directories above them are closed; the walk returns to such a directory by
// "..", compares its device and inode number with what it was before, and goes on where it
// stopped. So a walk costs at most window descriptors, and a few words of memory for each level.
// An error at an entry is counted, and the walk goes on. The walk is over early in one case: a
// directory in which it works was moved, and the walk would come back elsewhere.
//
// # The measure
//
// A file costs the blocks that it has, and at least the share of one inode in its file
// system, which is the bytes of the file system divided by its inodes (some 16 KiB for
// ext4 as it is usually made). Who may fill a part of the bytes may then fill that part of the
// inodes and no more. A directory costs what a file does. A file of several names is counted
// once, as long as there are at most [maxLinked] such files; beyond, each name is counted.
// A file that has no name left is counted if a process of the task has it open.
// What could not be read is told apart: see [Usage]. Out of sight are files without a name that
// are only mapped into memory or under way through a socket.
//
// Quotas of file systems for projects do not serve instead: the owner of a file may move it
// to another project, and the common file systems are made without.
//
// # The removal
//
// A removal takes each directory for its own user alone before it goes in, so that programs
// of others make nothing more there. It goes through a tree again while that removes
// anything, a bounded number of times, within [removeWithin]: nor does a program of its own user,
// which makes files faster than they go, keep a removal busy for ever.
package tree
