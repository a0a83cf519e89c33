// Package tree measures, gives away and removes directories that hostile programs filled, and that these programs may
// still change.
//
// # The walk
//
// One walk serves all three purposes. It opens each entry relative to the descriptor of its directory and follows no
// symbolic link, so no path is too long and no name is special. It goes depth first without recursion, and keeps the
// last [window] directories open. It returns to a closed directory by "..", compares its device and inode number with
// the earlier ones, and continues where it stopped. So a walk needs at most window descriptors, and a few words of
// memory for each level. An error at an entry is counted, and the walk goes on. It ends early only if a directory in
// its path was moved, because the walk would come back elsewhere.
//
// # The measure
//
// A file costs its blocks, but at least the share of one inode: the bytes of the file system divided by its inodes
// (about 16 KiB for a usual ext4). So a limit on bytes also limits inodes: a tenth of the bytes gives at most a tenth
// of the inodes. A directory costs as much as a file. A file with several names is counted once, for at most
// [maxLinked] such files; after that, each name is counted. A file without a name is counted if a process of the task
// has it open. Files that could not be read are reported separately: see [Usage]. Files without a name are not counted
// if they are only mapped into memory, or in transit through a socket.
//
// Project quotas of file systems cannot replace this: the owner of a file may move it to another project, and common
// file systems are made without them.
//
// # The removal
//
// A removal first makes each directory accessible to its own user only, so programs of other users cannot add anything.
// It walks the tree again as long as that removes anything, a bounded number of times, within [removeWithin]: a program
// of its own user may create files faster than they are removed.
package tree
