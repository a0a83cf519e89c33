// Package ledger is the bank's replicated state: a double-entry ledger in integer microcredits. It is pure: only
// [Ledger.Apply] changes it, and it has no clock, no I/O and no goroutines. Replicas that applied the same commands are
// byte-identical ([Ledger.Hash]). A ledger is not safe for concurrent use, but an [Image] of it is.
//
// # Model
//
// An account has a balance. Pending holds reserve a part of it, and the rest is available. Credits enter only by a
// grant, which moves them from the account "$issuer". So the issuer's balance is the negative of all issued credits,
// and all balances sum to zero. Example: after a grant of 5 to alice, $issuer has -5 and alice has 5. The available
// credits of any other account are never below minus the account's credit, which is 0 unless operators set it. An
// account is opened by its first grant, or as a project.
//
// A command has a batch of transfers, or a request about one account. Or it has neither, and only sets the time; see
// [Command]. The leader's clock gives each command its time. The ledger's time is the latest time of any command. A
// hold expires at a given time, or a given duration after its own command. Before a command is carried out, due holds
// lapse and due grants expire, earliest first. If several are due at the same time, holds come before grants; then the
// order is by identifier and account.
//
// A hold resolves exactly once, in one of three ways. A Post moves a part or all of the held credits, and frees the
// other part. A Void frees all of them. If the hold lapses, they are freed too. A hold that names a payee (Credit) can
// only be posted to that account. A service resolves only holds that it made; an operator resolves any. An account has
// at most [MaxHolds] pending holds.
//
// # Members
//
// A project is an account with members. Owners change the members and pay from the account, members use it for their
// jobs, and auditors only see it. A member's limit bounds the sum of what it ever spent and what it holds in the
// account; leaving and coming back does not reset this. The leader knows the rank of the caller ([Rank]) and sends it
// with the command. The ledger records the rank, and decides what each rank may ask for and which accounts a user owns.
//
// A frozen account still receives credits, and its holds can be resolved. Only an operator can hold or move other
// credits of it.
//
// # Grants that expire
//
// A lot is the part of an expiring grant that an account still has; pending holds may reserve a part of it. A hold,
// payment or withdrawal draws on the lot that expires first, then on the next, and last on credits that do not expire.
// When a hold is resolved, it spends the credits that expire first. It gives the other credits back to the lots from
// which they came. When a lot expires, the ledger itself transfers the free part of the lot to the issuer. Credits that
// are paid to another account keep their expiry. Credits that are earned, or that a correction gives back, do not
// expire. A return never takes an account below its limit: it waits until the account has enough.
//
// # Corrections
//
// No record is ever changed. A correction is a transfer in the other direction that names the transfer it corrects. The
// correction of a charge reduces what counts as spent; the correction of that correction increases it again. A
// correction's identifier is made from the identifier of the corrected transfer, so a transfer has at most one
// correction.
//
// # Identifiers
//
// The maker of a transfer chooses its identifier. The same identifier with the same content gets the first answer, for
// ever; with other content it is a Conflict. Two fields may differ, and their first value stays: the reason of a job's
// transfer, and the expiry of a hold. The ledger remembers every answer that depended on its state, including refusals
// (Insufficient, NotFound, PermissionDenied, Expired, Ended and others). So a delayed copy of a refused request cannot
// succeed after its maker acted on the refusal. The ledger does not remember malformed transfers (Invalid and TooLarge
// by [Check]); requests of callers who may not ask at all; and refused corrections, which can have no other identifier.
// It keeps only the kind of a refusal, since the text may differ between releases.
//
// The bank itself makes the identifiers of grants, payments, withdrawals, returns and corrections: from the caller and
// its key, from the record's number, or from the corrected transfer. A caller cannot choose one of these.
//
// A chain of linked transfers is one unit. If one is refused, all are, with the same kind of error, and all refusals
// are remembered. A chain is malformed if one of its transfers is malformed, if it has an identifier twice, or if its
// last transfer is linked. If only some of its identifiers are known, these get their first answer and the others a
// Conflict. Each step is checked against the state that the steps before it left.
//
// # Journal
//
// Every change is one record of an append-only journal. A record has the request, its maker, the outcome, and the
// standing of each account afterwards. Records are chained by hashes: the hash after the last record ([Head]) stands
// for all of them. A site that signed it cannot later change these records unnoticed.
//
// Records fill segments. A [Store] keeps these in memory ([New]) or in files ([Open], and package history). With files,
// memory has only the accounts, the pending holds, 25 to 40 bytes for each identifier, and the records after the last
// full segment. If a store fails, the ledger refuses everything from then on ([Ledger.Err]).
//
// Each entry of an account links to two earlier ones. So a statement can begin at any number or time after reading
// about 3 log n records.
//
// # Images
//
// An image is the accounts with their lots, the pending holds, the sums of the full segments, and the records after
// these. Capturing one copies the holds, and the accounts that changed since the last image; another goroutine writes
// it later. If the store does not survive a loss of power, the image has all records instead. Restoring such an image
// replays them, and fails if any byte differs.
//
// # Replay
//
// With a root of trust, a replay derives a journal: it carries out each signed record again, and the ledger must write
// the records that follow. It can begin with a ledger that has the first records, if these were derived before
// ([Checking]). Without a root, it finds the command of each record or run of records, and applies that command. So
// each rule is in one place, and a restore and a [Verifier] check every rule. [Image.Audit] is an independent check: it
// adds up all amounts without these rules.
//
// # Proofs
//
// After the record in which the site first states its keys ([Keys]), a command is carried out only with a proof of its
// maker: a signed request, or the marks of a session ([Session]). The proof gives the rank; the leader can only lower
// it. A command that only sets the time needs no proof. Trusted keys, open sessions and requests that must not be
// repeated are part of the state and its image; the root of trust ([Root]) is not. A replica without a root stops at
// the first proof. Package bank describes the whole chain of proof.
//
// # Errors
//
// A command that cannot be decoded, or has more than [MaxBatch] transfers, changes nothing, not even the time. Amounts
// are checked before they are added: an overflow is TooLarge. No input makes Apply or Restore panic.
//
// # Cost
//
// A transfer costs one to two microseconds, with decoding; a quarter of this is hashing. The cost grows only with the
// logarithm of the number of pending holds that have an expiry. The command that fills a segment also writes it.
package ledger
