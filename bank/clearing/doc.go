// Package clearing settles debts between the banks of different sites. The sites trust one another only for a limited
// amount. Together with a [ledger.Ledger], the clearing is the replicated state of a bank. Only [State.Apply] changes
// it. It has no clock, no I/O and no goroutines, and replicas that applied the same commands have the same bytes
// ([State.Hash]). It has no credits of its own: the ledger moves and reserves them, and the clearing remembers why.
//
// # Model
//
// Each bank has one account for each peer in its own ledger ([PeerAccount]). A positive balance is the amount that this
// site owes the peer. A negative balance is the amount that the peer owes; it is at most the peer's limit, which is the
// credit of the account. The accounts of two sites mirror each other: their balances sum to zero, except for
// instructions that one bank has carried out and whose outcome the other bank does not know yet. Example: west pays 3
// credits to bob at east. Then west's account for east has +3, and east's account for west has -3.
//
// Banks send each other instructions, numbered from 1 in each direction:
//
//	pay      pay an account of the receiver; the sender owes it
//	charge   take from an authorisation of the receiver, once; the receiver owes it
//	settle   the settlement of a cycle: take at most the given amount of the sender's debt
//	revoke   give up an authorisation of the sender that was not charged
//
// An instruction stays in the outbox under its number, and is sent again, until the receiver's signed receipt has its
// outcome. The receiver carries out the numbers in order, each once, and keeps each outcome, even a refusal, until the
// sender has confirmed it. Both banks enter each number with its outcome into a book, which has a running total, and a
// digest of all numbers, contents and outcomes. Every message has its sender's running total, and is signed.
//
// The amount of an instruction without an answer is reserved in the ledger of the bank that sent it, by a hold without
// an expiry. A confirmation makes the hold a transfer, and a refusal frees it; nothing else ends it. A time-out is not
// a failure: no user gets credits back because a peer did not answer.
//
// # Authorisations
//
// A user asks its home bank to reserve credits for one charge by one other site, and gets a statement signed by the
// bank: issuer, peer, identifier, account, amount, time of issue, interval and margin. The other site's bank needs only
// the signature to accept it. It reserves the amount from the issuer's limit and can then charge it, once and at most
// the amount, even if the issuer cannot be reached. An authorisation pays for one purpose, such as a job. The payee
// gets the charge when the home bank confirms.
//
// A charge must be made before Issued+Interval, by the clock of the bank that charges or by the latest time that the
// issuer signed, whichever is later. An interval shorter than the difference of the clocks may end for the peer before
// it begins.
//
// The home bank keeps the credits reserved until Issued+Interval+Margin by its own clock. If the peer reports that the
// job ended, it keeps them only for [clearing.ChargeWithin] from then on. The margin is [clearing.MaxClockSkew],
// because clocks differ, and a week, in which the charge must arrive. It only matters if the peer cannot be reached:
// otherwise the peer releases an authorisation that ended without a charge, and the user can have it revoked earlier.
// An authorisation that the peer accepted as firm, for example for a job that has begun, is not given up: a user cannot
// take back the payment for work under way. A service of the home site may ask for an authorisation for a user's job,
// and may have it revoked. So may an owner of the account and an operator. A member of a project who is not an owner
// can authorise only within a limit that an owner set.
//
// Who loses if the two sites are cut off from each other? Nobody, if a charge that was made in time reaches the home
// bank within the margin. A later charge is refused, and the site that charged bears the loss: it knew when the charge
// had to arrive. The limit that it gave the peer bounds its risk. The user is never charged more than it authorised,
// more than once, or after it was told that the credits are free.
//
// # Settlement
//
// At the end of a cycle each bank offers each peer the amount that it owes by its own book. The peer accepts the amount
// that it is owed by its book, as far as the other's share of the reserve covers it; the rest stays owed. An offer of 0
// means that nothing will come. An accepted amount leaves both accounts of the pair. The payer books it on
// [SettlementAccount], which stands for all other sites together. The receiver books it on the [SettledAccount] of the
// peer. The balance of that account is minus the amount that the peer has settled and not yet paid. The sum of these
// changes in a cycle is the site's multilateral position. [Net] compares the signed positions of all sites and returns
// the payments outside the ledgers. They are at most one fewer than the sites; debts in a circle need no payment. After
// a payment, the operator of the paying site withdraws the amount from its [SettlementAccount], and the operator of the
// other site grants it to the [SettledAccount]. Amounts that cancel each other are withdrawn and granted at the same
// site. Only operators do this: no message of a peer frees its share.
//
// Cycles are closed in order, so a wrong number closes at most the next cycle. A cycle that was closed by mistake can
// be opened again while no peer has accepted anything in it.
//
// # What a peer can cost
//
// A peer can cost this site at most its limit and its share, whatever it signs and in whatever order
// (TestALiarHasItsLimitAndShare). Both are the credit of an account, so the ledger refuses anything above them, even if
// the clearing is wrong. While the books of a pair disagree, nothing is taken on credit; earlier authorisations are
// still charged and paid. A peer can also charge the amounts that users authorised it to charge, and no more.
//
// A silent peer delays no other peer. When an authorisation is accepted, a place in the outbox is reserved for its
// charge or release, and a peer has at most [MaxVisits] such places. Payments and revocations have a limit of their
// own.
//
// # Parting
//
// A peer has a standing. The leader suspends a peer whose bank has not answered for long. While a peer is suspended
// nothing new begins: no payment, and no authorisation by either side. The next message that the peer signs ends the
// suspension; if the peer owes answers, the message must have news. A peer is parting when an operator says so. Then
// earlier agreements continue, and the debts are settled and paid. A bank that has nothing left with the peer says so
// with its last instruction:
//
//	part     the sender has settled everything, and asks for nothing more
//
// Two sites have parted when each has sent this instruction and has the answer to it. The books stay, and continue if
// an operator makes the site a peer again.
//
// A one-sided parting is one command. The operator states the loss, which must equal the peer's debt by trade and by
// settlements. An account of this site pays it. All credits reserved for the peer, or by it, are freed, and its keys
// are never trusted again. The amount that this site owes the peer stays on its [SettledAccount]. A later peering needs
// new keys on both sides, and new books.
//
// # Restoring
//
// A bank that was restored to an older state has lost instructions that its peers have. Each restore gives the site a
// higher incarnation, which it signs with its instructions. In a new incarnation it asks nothing of a peer, and carries
// out nothing for it, until the two books have been found equal. So no number is used twice. A peer refuses messages of
// an earlier incarnation. If a restore ran with a clock that was behind, its incarnation may be too low. Then the site
// signs one above the incarnation in the peer's totals.
//
// If instructions were lost, the site continues from its peer's totals: the running totals of both directions, the
// amount that the peer may still charge, and who is parting. The peer's operator confirms the totals, the peer's bank
// signs them, and the operator of the restored site signs that the site adopts them. This is one record. The books
// continue after the peer's last numbers, and this site owes what the totals say. The difference is booked to the
// [CorrectionAccount], which also pays charges of authorisations that were lost. Users have the credits that the backup
// says. A waiting payment whose number the peer already has is given back, because its outcome is unknown. Every other
// waiting instruction is sent again under a new number; the peer carries it out only once.
//
// # Invariants
//
// These statements are true after every command, whatever the order in which messages arrive. A simulation checks them
// (TestRing).
//
//  1. No credit is created or lost. Every change is a change of the ledger, whose balances
//     sum to zero.
//  2. A number is carried out at most once. Only the number after the last one in the book is
//     carried out. The book is in the same replicated state as the ledger that it changes: a
//     crash loses both or neither.
//  3. The sender's book is a prefix of the receiver's: it enters only outcomes from a receipt
//     whose digest covers all outcomes before. So the two accounts of a pair differ by exactly
//     the numbers that only the receiver has.
//  4. Sum the balances of all users at all banks. For the numbers that only the receiver has,
//     subtract the payments and add the charges. The result is the sum of the grants to users.
//  5. The hold of an instruction is resolved once, by its outcome: the instruction leaves the
//     outbox when its outcome is entered, in the order of the numbers (by 3).
//  6. An outcome that a sender may still ask for is remembered. It is forgotten only when the
//     sender has signed that it has entered it.
//  7. An authorisation is charged at most once, and at most its amount. At the home bank it is
//     one hold, which names the peer as its only payee, and which the ledger resolves once. This
//     does not depend on the peer.
//  8. A peer's debt by trade is at most its limit. The account's credit enforces this, and the
//     amount of each accepted authorisation is reserved from it until its charge is confirmed.
//     If the limit is lowered, nothing is taken back.
//  9. A peer's debt by settlements is at most its share of the reserve: the credit of its
//     [SettledAccount].
//
// From 2, 3 and 6 it follows that a message may be repeated, late or lost without harm. From the outbox it follows that
// an instruction is carried out if it is sent often enough.
//
// For 2 and 3 an answer must be durable before it is sent. So receipts, authorisations and outgoing instructions are
// read from the state that the log has committed. If the disk of a bank lost answers, its peers refuse its messages as
// [Lost]. The bank then carries out nothing for a peer until it has adopted the peer's totals.
//
// # Refusals
//
// A refusal of a message that no honest peer sends has a reason ([Refusal]) and is counted. Before the leader proposes
// a message, it calls [State.Screen], which refuses messages that are wrong in any state of the books; Apply screens
// again. A message whose running total does not match is refused and recorded as a dispute for an operator. [Compare]
// then finds the first number at which the two books differ, from signed pages of both books ([State.Lines]). Only new
// terms from the operator end a dispute, and not if they only lower the limit.
//
// # Duties of the caller
//
// Apply the commands to one State and one ledger in the order of one log, and capture and restore the two together;
// [Mark] distinguishes the clearing's commands from the ledger's. Do not correct transfers of the peers' accounts in
// the ledger, and grant these accounts nothing: the other site would not have the same change. Give no user a name that
// is [Reserved], and let no user choose an identifier of a transfer that begins with [TransferPrefix]. [State.Answered]
// may answer a message without a command if it is repeated, refused or without news; [State.Learns] says whether a
// receipt is of this kind. At [State.Due], propose a command that sets the time. Send [State.Outgoing] again until it
// is answered.
//
// # Cost
//
// An outstanding instruction takes a few hundred bytes; each peer has at most [MaxOutstanding] and [MaxVisits] of them.
// A line of a book takes about a hundred bytes, and a book has about ten thousand lines. A pending authorisation takes
// a few hundred bytes. A message costs the check of one signature, about a tenth of a millisecond. It may have up to
// [clearing.MaxInstructions] numbers. Each costs each bank about ten microseconds, with the ledger's work.
package clearing
