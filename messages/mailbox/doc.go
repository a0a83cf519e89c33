// Package mailbox is the mailbox of a replicated actor: an ordered log of
// commands that every replica applies alike to its state. [OpenRaft] keeps the log
// with hashicorp/raft, durable on a majority before a command is answered;
// [NewMemory] keeps it in the process, for tests and for simulated sites.
//
// # What passes through
//
// A command is bytes to this package. [Mailbox.Propose] adds it to the log
// entry that is being filled; a goroutine hands that entry to Raft as soon as
// fewer than Config.InFlight entries are on their way, so a lone command leaves
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
// # Reads
//
// Verify, then read the state. See [Mailbox.Verify] for why that order.
//
// # Disks
//
// A write that hangs would leave a leader in place that still sends heartbeats
// and never commits. A watchdog times every write and sync, probes the disk when
// it is idle, and calls Config.OnStuck, which by default ends the process. After
// a write that failed the store takes no more of them: the pages that a failed
// sync leaves behind cannot be trusted, the files can, once they are read again
// by a new process. A disk that runs low refuses proposals (ErrNoSpace) while
// there is still room for what was accepted, and accepts them again by itself.
//
// # Exchanging replicas
//
// [Group] adds and removes replicas while the group works. A new one, with an empty
// disk and no Bootstrap, is brought up to date first, by a snapshot where the log no
// longer goes back far enough, and only then counts; so a replica that does not come
// costs nothing. One is removed only if those that answer are a majority of the rest.
//
// # Damage
//
// Each entry has a checksum that includes the one before it. A replica checks its
// directory when it starts and each entry whenever it is read, arrives or is applied.
// Beside the log is a file of promises: the votes, the end of the log, and a name for
// the disk, which the peers know too. A replica that has less than it promised, or
// another disk than the peers know, takes no part in elections until a leader has
// brought it up to date as a replica without a vote. States are compared through the
// log. What is damaged is put aside and begun anew from the peers, or else refused.
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
// refused. Connections that do not say who they are keep nobody out: each new one is let
// begin its handshake, and the oldest of too many is closed.
package mailbox
