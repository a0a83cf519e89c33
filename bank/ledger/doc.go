// Package ledger is the bank's replicated state: a double-entry ledger in
// integer microcredits. It is pure: it changes only by [Ledger.Apply], has no
// clock, no I/O and no goroutines, and replicas that applied the same commands
// are byte-identical ([Ledger.Hash]). It is not safe for concurrent use; an
// [Image] of it is.
//
// # Model
//
// An account has a balance. Pending holds reserve a part of it, and the rest is
// available. Credits enter only by a grant, which moves them from "$issuer", so the
// issuer's balance is minus what was issued, and all balances sum to zero. The
// available credits of any other account are never below zero, or below minus the
// credit that operators gave it. An account is opened by its first grant, or as a
// project.
//
// A command is a batch of transfers, a request about one account, or the bare
// passing of time; see [Command]. The leader's clock gives the time of a command,
// and the ledger's time is the latest that it was given. A hold expires at an
// instant, or after a span from its own command's time. Before a command is carried
// out, holds that are due lapse and grants that are due expire: the earliest first,
// at one instant the holds before the grants, then by identifier and account.
//
// A hold resolves exactly once: by a Post, which moves part or all of it and
// frees the rest, by a Void, or by lapsing. A hold that names a payee (Credit) can
// only be posted to that account. A service resolves only the holds that it made;
// an operator resolves any. An account has at most [MaxHolds] of them.
//
// # Members
//
// A project is an account in which others have a part: owners change the members
// and pay from the account, members have credits held on their word, and auditors
// only see it. A limit bounds what a member has ever spent plus what it holds in the
// account; a member that leaves and comes back has spent what it had. The leader
// knows the rank of who asks ([Rank]) and sends it with the command; the ledger
// records the rank and decides what each rank may ask for, and what a user owns.
//
// A frozen account receives credits, and its holds are resolved; only an operator
// holds or moves anything else on it.
//
// # Grants that expire
//
// A lot is what an account has of a grant that expires; a part of the lot may be
// held. A hold, payment or withdrawal draws on the lot that expires first, then on
// the next, and on other credits last. A resolved hold spends the earliest of what
// it drew and gives the rest back to the same lots. At expiry the free part of a lot
// returns to the issuer by a transfer of the ledger's own; what a hold frees later
// returns when the hold's chain is done. Credits that are paid to another account
// keep their expiry. Credits that are earned, or that a correction gives back, have
// none. A return never takes an account below its limit: it waits until the account
// can cover it.
//
// # Corrections
//
// No record is ever changed. A correction is a transfer in the other direction that
// names the transfer it corrects. The correction of a charge counts as not spent;
// the correction of that correction counts as spent again. A correction's identifier
// is derived from what it corrects, so a transfer has at most one.
//
// # Identifiers
//
// The maker of a transfer chooses its identifier. The same identifier with the same
// content gets the first result, for ever; with other content it is a Conflict. The
// reason of a job's transfer, and the expiry of a hold, are no such content: the
// first stands.
// Remembered is every answer that depended on the state: transfers done, and
// refusals (Insufficient, NotFound, PermissionDenied, Expired, Ended and the like).
// So a delayed copy of a refused request cannot succeed after its maker acted on the
// refusal; to try again is a new transfer under a new identifier. Not remembered are
// malformed transfers (Invalid and TooLarge by [Check]), which are refused alike at
// any time, requests of those who may not ask at all, and refused corrections, which
// can have no other identifier. Of a refusal only the kind is kept, since another
// release may choose other words.
//
// Grants, payments, withdrawals, returns and corrections are transfers under
// identifiers that the bank makes: of the caller and its key, of the record's number,
// or of what is corrected. Nobody else may choose one of these.
//
// A chain of linked transfers is one unit. If one is refused, all are, each with the
// same kind of error, and all are remembered. A chain is malformed if a transfer in
// it is, if an identifier stands in it twice, or if it has no end. If only some of
// its identifiers are known, these get their first result and the others a Conflict.
// Each step of a chain is checked against the state that the steps before it left.
//
// # Journal
//
// Every change is one record of an append-only journal. A record says what was
// asked, by whom, with which outcome, and the standing of each account after it.
// Records are chained by hashes: the hash after the last one ([Head]) stands for all
// of them, so a site that signs it cannot rewrite what it signed.
//
// Records fill segments, which a [Store] keeps: in memory ([New]), or in files
// ([Open], and package history). With files, memory holds only the accounts, the
// pending holds, 25 to 40 bytes for each identifier, and the records since the last full
// segment. Where a store fails, the ledger may hold half of a change and refuses
// everything from then on ([Ledger.Err]).
//
// Each entry of an account leads to two earlier ones. So a statement begins at any
// number or time after about 3 log n records were read.
//
// # Images
//
// An image is the accounts, the pending holds, the expiries to come, the sums of the
// full segments and the records since. Taking one copies the accounts that changed
// since the last image, and the holds; it is written later by another goroutine. If
// the store does not survive a loss of power, the image has all records instead;
// restoring such an image replays them, and refuses it if any byte differs.
//
// # Replay
//
// A ledger that knows its root of trust derives a journal: each record that says what was
// signed is carried out again, and the records behind it must be what it leads to. One that
// has no root finds the command behind each record, or run of records, instead. Either
// applies the commands to a ledger that must write the same bytes. So each rule is in one
// place, and a restore and a [Verifier] check it again. [Image.Audit] is a second opinion by
// plain addition, without those rules.
//
// # Proofs
//
// From the record in which the site says which keys are its own ([Keys]), a command
// is carried out only with a proof of who asked: a signed request, or the marks of a
// session ([Session]). The proof gives the rank; the leader can only lower it. The
// passing of time needs no proof. Trusted keys, open sessions and requests that may
// not come again are part of the state and its image; the root of trust ([Root]) is
// not. A replica without a root stops at the first proof. Package bank describes the
// whole chain of proof.
//
// # Errors
//
// A command that cannot be decoded, or has more than [MaxBatch] transfers, changes
// nothing, not even the time. Amounts are checked before they are added: an overflow
// is TooLarge. No input makes Apply or Restore panic.
//
// # Cost
//
// One to two microseconds for each transfer, decoding included; a quarter of it is
// hashing. The cost grows with the logarithm of the pending holds that have an
// expiry, and with nothing else. A full segment is written within the command that
// fills it.
package ledger
