// Package bank is the actor that keeps a site's credits: one replica of a
// group that shares a [ledger.Ledger] through a mailbox.
//
// The leader alone serves. It answers the commands transfer (services of the
// site and operators); grant, withdraw, correct, project and credit (operators);
// member, freeze and pay (whoever owns the account, and operators); and the
// discoverable queries account, accounts, statement, books and status. Who
// calls is the last token of the subject; its rank, as configured here, goes
// into the command, and what a user owns is for the ledger to say. What is
// refused is counted, by verb and kind. The other replicas answer nothing, so
// that a request meets the leader or nobody; how each replica fares is told by
// its metrics, and by the leader's status.
//
// Everybody sees their own account and those in which they have a part;
// operators and services see all. The books' running totals are anybody's to
// see; only operators have them recomputed. An answer to a query shows every
// command answered before the query was made: leadership is verified, then the
// state is read.
//
// Time is the leader's clock, carried by each command. While holds are due the
// leader proposes the bare passing of time, so that they lapse on an idle site
// too.
//
// A command whose outcome is not known is answered Unknown: whoever asks again
// under the same identifiers gets the result, and nothing happens twice. Grants,
// payments and withdrawals are identified by the caller and its key; changes of
// members, freezing and credit set what is to be, so that asking again changes
// nothing.
//
// The journal is kept in files where the configuration names a directory, one
// of each replica (package history), and in memory otherwise. Operators read it
// page by page (journal) with the checkpoints that each replica signs with the
// site's key after every ten thousand records, when it stops, and when it is
// asked to (checkpoints). Replicas that lack a part of it fetch it from the
// leader (segment).
//
// # Other sites
//
// The replicated state is the ledger and a [clearing.State] together: commands
// that begin with [clearing.Mark] are the clearing's, and an image has the
// clearing's part first. Where the bank has a key to sign with, its leader also
// runs the clearing's shell (package courier): it serves the requests of users
// (authorise, remit, revoke), services (accept, charge), operators (peer,
// reserve, close, net, reconcile, peers) and the banks of peers (instruct,
// lines, position), and sends peers what they have not answered for as long as
// it leads. The accounts of peers are touched by nothing else: what another
// request, a transfer or a correction would do to one is refused, and only the
// settlement account is granted to and withdrawn from. That is refused before
// it reaches the log, so that old logs are applied as they were.
package bank
