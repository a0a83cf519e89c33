// Package bank is the actor that keeps a site's credits. A bank is a group of replicas that
// share a [ledger.Ledger] through a mailbox.
//
// Only the leader serves. It answers the commands transfer (services of the site and
// operators); grant, withdraw, correct, project and credit (operators); member, freeze and pay
// (owners of the account, and operators); and the discoverable queries account, accounts,
// statement, books and status. The caller is the last token of the subject. The configuration
// gives the caller's rank, which goes into the command; the ledger checks which accounts a user
// owns. Refusals are counted by verb and kind. The other replicas answer nothing, so a request
// reaches the leader or nobody.
//
// Users see their own account and the accounts that they are members of; operators and services see
// all. Anybody sees the books' running totals; only operators can have them recomputed. The
// answer to a query shows every command that was answered before the query: leadership is
// verified first, then the state is read.
//
// Time is the leader's clock, which each command carries. While holds are due, the leader
// proposes the passing of time, so that holds lapse on an idle site too. If for some time
// nobody could extend holds (nothing ran, or clocks were set), it holds the time back for some
// minutes, until they are extended.
//
// A user's refused command leaves a record in the journal too. So a user who sends more than a
// hundred commands at once, or two a second, is answered Exhausted.
//
// If the outcome of a command is unknown, the answer is Unknown. Asking again under the same
// identifiers returns the result, and nothing happens twice. Grants, payments and withdrawals
// are identified by the caller and its key; the other commands state the final value.
//
// If the configuration names a directory, the journal is kept in files there, for each replica
// (package history); otherwise in memory. Operators read it page by page (journal). Each
// replica signs checkpoints of it with the site's key: after every ten thousand records, a minute
// after the first record that has none, when it stops, and on request (checkpoints). So a busy
// replica signs one a minute, in 0.15 ms. A replica that lacks a part fetches it from the leader
// (segment). The leader compares the latest checkpoint of each replica with its books.
// If they contradict one, acknowledged records were lost, and the bank moves no credits until
// an operator has decided.
//
// # Who asked
//
// Everything that a replica carries out is proven to have been asked for, whoever wrote it into
// the log. The chain from a user's key to a balance has the links below. Every replica checks
// each of them when it applies a command, and "candor bank verify" checks them again:
//
//   - The key of the site's account is in the keys directory of each host, and its
//     public half in every credentials file: nothing about it is taken from the log, the
//     journal or an image ([ledger.Root]). It may name another key that follows. The
//     statements of keys have the chain; the books go by the longest, and by no other.
//   - It signs which keys sign the credentials of users, operators and services, which
//     of them have ended, and which names' keys are revoked. These statements are
//     records, so all replicas go by the same ones. What was said stays true: a key
//     that ended proves nothing ever after, and what it proved before stays proven.
//     The leader makes a statement when the keys directory changes.
//   - One of these keys signs the claim in a credentials file: this key is the name's.
//   - The name's key signs the request, in its own bytes, with the time; it is good for
//     an hour either way. Who is refused for the time signs again, by the time of the
//     bank. A request that has no key or identifier of its own is carried out once. Of
//     transfers it signs the opening of a session, and each transfer has a mark of it
//     (package proof).
//   - The record of the signed request stands in the journal before what came of it,
//     and each transfer's record has its mark. What has neither is what the rules
//     force: a hold that lapses, a grant that expires.
//   - Requests of banks of other sites are under the signatures of these, which the
//     clearing checks as it applies them; what users ask of the clearing is proven
//     like all else.
//
// A bank with the site's keys is proven from its first record on: it accepts no books whose
// first record is not the site's statement of its keys.
//
// A replica that starts trusts no image. It carries out again, from the first record on, what
// the journal says was signed. The result must equal the journal, byte by byte, and the image's
// state ([ledger.RestoreWith]). If a record follows from no signature and no rule, the start
// fails and names its number. "candor bank verify" does the same with the same code: there is
// no second set of rules for auditors.
//
// What an attacker can do, by what the attacker has:
//
//   - the log or the ports of a replica: reorder, delay or drop requests; take no credits;
//   - write access to a disk: stop a replica from starting, or make a journal fail its check;
//   - read access to a disk, without the keys directory: see who paid whom;
//   - the keys directory of a host, or the memory of a replica: everything, because an
//     attacker can make an operator; so only their owner can read the files of seeds;
//   - a user's credentials: whatever the user may do, until they are revoked;
//   - a service's credentials: transfers between accounts, but no grants.
//
// The journal does not prove the time of a record (it is the leader's clock, within an hour of
// each signature), the order of requests, or that nothing was left out at its end: a transfer
// whose accounts do not appear again could have been removed. A checkpoint proves that all
// records before it are there. So a transfer can only be removed if it was recorded in the last
// minute before a replica was killed, or by somebody who can also change the file of checkpoints:
// keep copies of checkpoints elsewhere. What the leader finds out by itself (a peer is silent, a
// backup was restored) is recorded without a signature; it moves no credits.
//
// # Other sites
//
// The replicated state is the ledger and a [clearing.State] together: commands
// that begin with [clearing.Mark] are the clearing's, and an image has the
// clearing's part first. Where the bank has a key to sign with, its leader also
// runs the clearing's shell (package courier): it serves the requests of users
// (authorise, remit, revoke), services (accept, charge), operators (peer,
// part, reserve, close, net, reconcile, confirm, adopt, peers) and the banks of peers
// (instruct, lines, totals, position), and sends peers what they have not answered for as long
// as it leads. Who may not pay from an account may not remit from it. The accounts of peers
// are touched by nothing else: what another request, a transfer or a correction would do to one is refused, and only the
// settlement account is granted to and withdrawn from. That is refused before
// it reaches the log, so that old logs are applied as they were.
package bank
