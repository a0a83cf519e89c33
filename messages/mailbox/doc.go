// Package mailbox is the mailbox of a replicated actor: an ordered log of
// commands that every replica applies alike to its state. [OpenRaft] keeps the log
// with hashicorp/raft, durable on a majority before a command is answered;
// [NewMemory] keeps it in the process, for tests and for simulated sites.
//
// # What passes through
//
// A command is bytes to this package. [Mailbox.Propose] adds it to the log
// entry that is being filled; a goroutine hands that entry to Raft as soon as
// fewer than three entries are on their way, so a lone command leaves
// at once and a crowd of them shares one entry, one sync of each disk and one
// round of the network. Each caller gets the result that its own command had on
// this replica, in log order.
//
// # Errors
//
// A command that was refused before it reached the log is ErrNotLeader,
// ErrNoSpace or ErrClosed (or an error of kind TooLarge), and may be sent again
// anywhere. Every other failure is ErrUnknown: the command may be applied now,
// later, or never, so it is to be sent again under the same identifier, which
// the actor's state remembers.
//
// A command that its machine cannot read is refused by Propose. If such a command is in the log
// all the same, as the leader was of another release, the replica ends with a sentence, and its
// files stay as they are: to pass over a committed entry would make its state another than the
// states of the others. So does a replica that is sent a snapshot which it cannot read. A snapshot
// names the build that wrote it.
//
// # Reads
//
// Verify, then read the state. See [Mailbox.Verify] for why that order.
//
// # Leaders that fail
//
// Elections are Raft's own, with its pre-votes and its leader's lease. A replica that has heard
// nothing of the leader for Config.Timeout, up to three times as long by chance, looks for a new one, and a
// leader that does not hear from a majority for Config.Timeout steps down. A leader that stops by
// plan hands its lead over first.
//
// Raft's messages are passed on as they are or refused, never changed. What else replicas have to know of one another
// they ask on connections of their own (see exchange): a leader before it sends entries, a replica
// before it asks for a vote, and a leader twice a second.
//
// # Disks
//
// A leader whose disk hangs would still send heartbeats and never commit. So a watchdog
// times every write and sync, and probes the disk when it is idle. After two seconds
// without an end of a write a leader sends no heartbeats any more, so that the others
// elect another; after twenty, and when a write fails, the process ends. After a failed write nothing more is written: the
// memory pages that a failed sync leaves behind cannot be trusted, while the files can be
// trusted once a new process has read them. When the disk runs low, proposals are
// refused (ErrNoSpace) while there is still room for the accepted ones, and accepted
// again once there is space. A leader that is low on space hands its lead to a replica
// that is not, and answers ErrNotLeader meanwhile. So proposals are refused only where all
// disks that could serve are low.
//
// # Exchanging replicas
//
// [Regroup] adds and removes replicas while the group works. A new one, with an empty
// disk and no Bootstrap, is brought up to date first, by a snapshot where the log no
// longer goes back far enough, and only then gets a vote; so a replica that never starts
// costs nothing. A replica is removed only if a majority of the others answers.
//
// # Damage
//
// Each entry has a seal: a checksum that includes the seal of the entry before. A replica
// checks its directory when it starts and every hour, and each entry when it is read,
// arrives or is applied. Beside the log is a file of promises: the votes, the end of the log, and a
// name for the disk, which the peers know too. A replica takes no part in elections if it
// has less than it promised, or another disk than the peers know, until a leader has
// brought it up to date as a replica without a vote. Replicas compare their states
// through the log, whatever builds they run; the one that differs from two stops. A
// replica with a damaged log goes on from its latest snapshot and the entries
// after it. Where these are damaged too, it puts its directory aside and begins anew from its peers;
// without peers it does not start.
//
// # Replicas that were put back
//
// A replica follows a leader only once it knows that the leader's log has what was acknowledged
// here: that both have the last such entry in the same reign, the part of the log that one leader
// wrote. Leaders tell that on connections of this package's own, before they send anything else. If
// the leader's log lacks it, a majority lost its disks or came back with older copies. Then neither
// of the two leads or follows, no log is cut, and the group stops until an operator says
// which log is right. A new leader serves once each replica that can be reached has answered it.
//
// A group that was planted from a backup ([Plant]) has a mark in its log. A replica without the mark
// neither votes for nor follows a replica with it, and the group goes on without it.
//
// # Identity and addresses
//
// Raft knows replicas by their IDs alone. An ID is turned into an address each
// time a connection is made, so addresses may change between starts; for replicas that
// were added later and stand in no configuration, the log has the address.
//
// Whoever can speak to a replica can write its log. So replicas of one process are
// connected by pipes in memory ([Local]) and open no port, and between processes every
// connection is TLS 1.3, on loopback too, with a certificate at both ends that is for
// exactly one replica of this group (Config.Group). A configuration without either is
// refused. Silent connections keep no replica out: every new connection may begin its
// handshake, and the oldest of too many is closed.
package mailbox
