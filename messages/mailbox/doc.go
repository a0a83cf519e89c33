// Package mailbox is the mailbox of a replicated actor: an ordered log of commands that every replica applies to its
// state in the same way. [OpenRaft] keeps the log with hashicorp/raft: a command is durable on a majority before it is
// answered. [NewMemory] keeps it in the process, for tests and simulated sites.
//
// # What passes through
//
// To this package a command is bytes. [Mailbox.Propose] adds it to the log entry that is being filled. A goroutine
// gives that entry to Raft as soon as fewer than three entries are in flight. So a single command leaves at once, and
// many commands share one entry, one sync of each disk and one network round trip. Each caller gets the result of its
// own command on this replica, in log order.
//
// # Errors
//
// ErrNotLeader, ErrNoSpace, ErrClosed and errors of kind TooLarge mean that the command did not reach the log; it may
// be sent again to any replica. Every other failure is ErrUnknown: the command may be applied now, later, or never.
// Send it again under the same identifier, which the actor's state remembers.
//
// Propose refuses a command that its machine cannot read. Such a command can still be in the log, if the leader ran
// another release. Then the replica ends with an error, and its files stay unchanged: if it skipped a committed entry,
// its state would differ from the states of the other replicas. A replica also ends if it is sent a snapshot that it
// cannot read. A snapshot names the build that wrote it.
//
// # Reads
//
// Call Verify first, then read the state.
//
// # Leaders that fail
//
// Elections are Raft's own, with pre-votes and a leader's lease. A replica that has not heard from the leader for
// Config.Timeout (randomly up to three times as long) starts an election. A leader that does not hear from a majority
// for Config.Timeout steps down. A leader that is stopped on purpose hands leadership over first.
//
// This package passes Raft's messages on unchanged, or refuses them. Replicas exchange everything else that they must
// know of each other on separate connections (see exchange). A leader asks the others before it sends entries, and
// twice a second. A replica asks them before it requests a vote.
//
// # Disks
//
// A leader whose disk hangs would still send heartbeats and never commit. So a watchdog times every write and sync, and
// probes the disk when it is idle. After a write has hung for two seconds, a leader stops sending heartbeats, so that
// the others elect another leader. After twenty seconds, or when a write fails, the process ends. When the disk is
// almost full, proposals are refused (ErrNoSpace) until there is space again; there is still room for the proposals
// that were accepted. A leader whose disk is almost full hands leadership to a replica with more space, and answers
// ErrNotLeader meanwhile.
//
// # Exchanging replicas
//
// [Regroup] adds and removes replicas while the group works. A new replica, with an empty disk and no Bootstrap, first
// gets the log, or a snapshot if the log no longer goes back far enough. Only then it gets a vote, so a replica that
// never starts does no harm. A replica is removed only if a majority of the others answers.
//
// # Releases
//
// The replicas of a group agree on a level ([messages.Level]), and propose only commands that each release of that
// level can carry out. Each replica tells the leader the level of its release. When all replicas have been able to work
// with a higher level for a day, or when an operator asks for it, the leader raises the level by an entry of the log.
// Until then, every replica can go back to the release before. A replica may find in its log or in a snapshot that the
// group agreed on a level with which its release cannot work.
//
// # Damage
//
// Each entry has a seal: a checksum that includes the seal of the entry before it. Next to the log is a file of
// promises: the votes, the end of the log, and a name of the disk, which the peers know too. If a replica has less than
// it promised, or its disk is not the disk that the peers know, the replica takes no part in elections. First a leader
// must bring it up to date as a replica without a vote. Replicas compare their states through the log, whatever builds
// they run; a replica that differs from a majority stops. A replica with a damaged log continues from its latest
// snapshot and the entries after it. If these are damaged too, it moves its directory aside and gets a new state from
// its peers; without peers it does not start.
//
// # Replicas that were put back
//
// A replica follows a leader only when it knows that the leader's log has all that was acknowledged here: both must
// have the last such entry in the same reign, which is the part of the log that one leader wrote. Leaders send this
// information on separate connections before they send anything else. If the leader's log lacks the entry, a majority
// lost its disks or came back with older copies. Then neither of the two leads or follows, no log is cut, and the group
// stops until an operator says which log is right. A new leader begins to serve when every reachable replica has
// answered it.
//
// A group that was restored from a backup ([Plant]) has a mark in its log. A replica without the mark neither votes for
// nor follows a replica with the mark. The group continues without such a replica.
//
// # Identity and addresses
//
// Raft knows replicas only by their IDs. Each time a connection is made, the ID is resolved to an address, so addresses
// may change between starts. If a replica was added later and is in no configuration, its address is in the log.
//
// Whoever can connect to a replica could write its log. So replicas of one process are connected by pipes in memory
// ([Local]) and open no port. Between processes every connection is TLS 1.3, on loopback too, and both ends have a
// certificate for exactly one replica of this group (Config.Group). A configuration with neither of the two is refused.
// Connections that send nothing cannot keep a replica out: every new connection may begin its handshake, and if there
// are too many, the oldest is closed.
package mailbox
