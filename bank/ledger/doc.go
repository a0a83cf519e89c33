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
// all balances always sum to zero. No other account's available credits ever
// go below zero. An account is opened by its first grant; a project is an
// account with members.
//
// A command is a batch of transfers, a grant, a change of membership, or the
// bare passing of time; see [Command]. Time is the leader's, carried by the
// command, and never runs backwards: the ledger's time is the latest it was
// given. At each command's time, before anything else, the holds that are due
// lapse by themselves, in the order of (expiry, identifier).
//
// A hold resolves exactly once: by a Post (which moves part or all of it and
// frees the rest), by a Void, or by lapsing. A hold that names a payee
// (Credit) can only be posted to it. Post, Void and Extend need not repeat the
// hold's account and amount; where they do, they must be right.
//
// # Identifiers
//
// The maker of a transfer chooses its identifier. The same identifier with the
// same content is answered with the first result, for ever; with other
// content it is a Conflict. What is remembered is everything that depended on
// the state: transfers done, and refusals (Insufficient, NotFound,
// PermissionDenied, Expired, Ended and the like), so that a late duplicate of
// a refused request cannot succeed after its maker acted on the refusal. What
// is malformed (Invalid, TooLarge by [Check]) is not remembered: it is refused
// alike at any time.
//
// A chain of linked transfers is one unit. If one is refused, all are, each
// with the same kind of error, and all are remembered. A chain with a
// malformed transfer, an identifier twice, or no end is malformed as a whole.
// In a chain of which some identifiers are known and some are not, the known
// ones get their first result and the others a Conflict.
//
// # Journal
//
// Every change is one record of an append-only journal, from which all else
// can be derived; a record says what was asked, by whom, what it came to, and
// the standing of each account after it. It is kept in pages of bytes that are
// never rewritten. An image is the journal's pages up to now, shared, and a
// copy of the standings: taking one costs a word per page and a few per
// account, nothing per transfer. Restoring replays the records under the same
// rules that made them, and refuses an image in which any byte differs from
// what they give. [Image.Audit] is a second opinion, by plain addition and
// without those rules.
//
// All records and all results are kept, in memory: about 200 bytes for each
// transfer, and each image writes them all. A page that is full could live in
// a file, and records could be chained by hash, without changing what stands
// here.
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
// One to two microseconds for each transfer, including its decoding; logarithmic
// in the number of pending holds that have an expiry, constant in everything
// else.
package ledger
