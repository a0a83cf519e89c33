// Package ledger is the bank's replicated state: a double-entry ledger in
// integer microcredits. It is pure: it changes only by [Ledger.Apply], has no
// clock, no I/O and no goroutines, and replicas that applied the same commands
// are byte-identical ([Ledger.Hash]). It is not safe for concurrent use; an
// [Image] of it is.
//
// # Model
//
// An account has a balance, and a part of it that is reserved by pending
// holds; what is left is available. Credits enter only by a grant, which moves
// them from "$issuer"; the issuer's balance is minus what was issued, so that
// all balances always sum to zero. What another account has available never
// goes below zero, or below minus the credit that operators gave it; pending
// holds count as if they were spent. An account is opened by its first grant,
// or as a project.
//
// A command is a batch of transfers, a request about one account, or the bare
// passing of time; see [Command]. Time is the leader's, carried by the
// command, and never runs backwards: the ledger's time is the latest it was
// given. A hold may expire at an instant, or after a span that counts from its
// own command's time, which does not depend on its maker's clock. At each
// command's time, before anything else, holds that are due lapse by themselves
// and grants expire: the earliest first, at one instant the holds before the
// grants, and these by identifier and account.
//
// A hold resolves exactly once: by a Post (which moves part or all of it and
// frees the rest), by a Void, or by lapsing. A hold that names a payee
// (Credit) can only be posted to it. Post, Void and Extend need not repeat the
// hold's account and amount; where they do, they must be right. A service
// resolves only the holds that it made; an operator any, so that none can get
// stuck. An account has at most [MaxHolds] of them.
//
// # Members
//
// A project is an account in which others have a part: owners, members, who
// have credits held on their word, and auditors, who only see. A limit bounds
// what a member has spent and holds in the account, together and ever; it is
// counted on while the member is away. Owners change members and pay from the
// account. The rank of whoever asks ([Rank]) is the leader's to know and comes
// with the command, and is written down; what each rank may ask for, and what a
// user owns, is decided here.
//
// A frozen account receives, and its holds are settled; nothing new is held on
// it or moved from it, but by an operator.
//
// # Grants that expire
//
// What an account has of a grant that expires is a lot, of which a part may be
// held. A hold, and whatever else takes credits, draws on the lot that expires
// first, then on the next, and on other credits last. When a hold is resolved,
// what is spent comes from the earliest of what it drew, and the rest goes back
// to where it came from. At its expiry the free part of a lot returns to the
// issuer by a transfer of the ledger's own, and what holds free of it later
// returns as soon as their chain is done. Credits that are paid to another
// account keep their expiry; those that are earned have none, and neither have
// those that a correction gives back. A return never takes an account below its
// limit: what it owes delays it, until something comes in.
//
// # Corrections
//
// Nothing is changed that was written. A correction is a transfer in the other
// direction that names the one that it corrects; the correction of a charge
// counts as not spent, and the correction of that as spent again. Its identifier is derived from what it corrects, so there
// is one at most, which can be corrected in turn.
//
// # Identifiers
//
// The maker of a transfer chooses its identifier. The same identifier with the
// same content is answered with the first result, for ever; with other
// content it is a Conflict. What is remembered is everything that depended on
// the state: transfers done, and refusals (Insufficient, NotFound,
// PermissionDenied, Expired, Ended and the like), so that a late duplicate of
// a refused request cannot succeed after its maker acted on the refusal. That
// includes lack of credits: whoever was told that a hold was refused may have
// told its user so, who must not find it made when a delayed copy arrives after
// the next grant. To try again, when there are credits, is a new transfer under a
// new identifier. What is malformed (Invalid, TooLarge by [Check]) is not
// remembered: it is refused alike at any time. Of a refusal its kind is kept, not its
// words, which another release may choose otherwise. Nor is what somebody asked who
// may not ask at all, so that strangers leave no trace, nor the refusal of a
// correction, which can have no other identifier and asks for the same whenever
// it arrives.
//
// Grants, payments, withdrawals, returns and corrections are transfers under
// identifiers that the bank makes, of the caller and its key, the number of the
// record, or what is corrected. Nobody else may choose one of these.
//
// A chain of linked transfers is one unit. If one is refused, all are, each
// with the same kind of error, and all are remembered. A chain with a
// malformed transfer, an identifier twice, or no end is malformed as a whole.
// In a chain of which some identifiers are known and some are not, the known
// ones get their first result and the others a Conflict. Each step of a chain
// is held against what the ones before it left, so credits may pass through an
// account that has none; as each has a debit and a credit, it sums to zero.
//
// # Journal
//
// Every change is one record of an append-only journal, from which all else
// can be derived; a record says what was asked, by whom, what it came to, and
// the standing of each account after it. Records are chained: each has a hash
// of itself and the hash before it ([Head]), so that the hash after the last
// stands for all of them, and a site that signs it now and then cannot rewrite
// what it signed.
//
// Records fill segments, which a [Store] keeps: in memory ([New]), or in files
// of which nothing stays in memory ([Open], and package history). In memory
// are the accounts, the pending holds, 16 bytes for each identifier (the index:
// a hash, and the number of the record to look at), and the records since the
// last full segment. Where a store fails, the ledger refuses everything from
// then on ([Ledger.Err]), for what it holds may be half of a change.
//
// An entry on an account's statement leads to two earlier ones, so that a
// statement begins anywhere, at a number or a time, after about 3 log n records
// have been read, without an index beside the journal.
//
// # Images
//
// An image is the accounts, the pending holds, the expiries to come, the sums
// of the full segments and the records since. Taking one copies the accounts
// that changed since the last one, and the holds; writing it happens aside. Where
// the store does not survive a loss of power (it is in memory), an image has all
// records instead, and restoring replays them under the same rules that made
// them, and refuses an image in which any byte differs from what they give.
// Restoring beside a store that does survive reads the identifiers' hashes from
// the segments' tables, not the records.
//
// # Replay
//
// Records are replayed by the code that commands run through: for each record,
// or run of records, the command is found that was written down so, and is
// applied to a ledger that must come to the same bytes. So each rule (who, when,
// of which form, linked to what, refused why) is in one place, and is checked
// again by a restore and by [Verifier].
//
// [Image.Audit] is a second opinion, by plain addition and without those rules;
// [Verifier] is one for outsiders, with both.
//
// # Releases
//
// What a command does, and how it is written down, follows from its version. A
// ledger is under the latest rules that any of its commands was of; images and
// records say which. So a replica that applies the commands of an earlier release
// comes to what that release came to. A bank whose replicas are of two releases
// must not take commands of the later one: those of the earlier refuse them.
//
// # Proofs
//
// From the record on in which the site says which keys are its own ([Keys]), a command
// is carried out only with a proof of who asked: a signed request, or marks of a
// session ([Session]). Who has which rank is then what the proof says, and the leader
// can only take from it. Time passes without. The trust in keys, the open sessions and
// the requests that may not come again are part of the state and its image; the root
// of trust ([Root]) is not. A replica without a root stops at the first proof, for it
// would come to another state. The chain of proof as a whole is in package bank.
//
// # Errors
//
// A command that cannot be decoded, or has more than [MaxBatch] transfers,
// changes nothing, not even the time. Amounts are checked before they are
// added: what would overflow is TooLarge. No input makes Apply or Restore
// panic.
//
// # Cost
//
// One to two microseconds for each transfer, including its decoding, of which a
// quarter goes into hashes; logarithmic in the number of pending holds that have
// an expiry, constant in everything else. A full segment is written within the
// command that fills it.
package ledger
