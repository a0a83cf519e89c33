// Package clearing settles between the banks of different sites, which trust
// one another for a bounded amount and no further. It is the second half of a
// bank's replicated state, composed with a [ledger.Ledger]: it changes only by
// [State.Apply], has no clock, no I/O and no goroutines, and replicas that
// applied the same commands are byte-identical ([State.Hash]). It has no
// credits of its own. What it moves or sets aside is moved and set aside in the
// ledger; here it is only remembered why.
//
// # Model
//
// Each bank has one account for each peer in its own ledger ([PeerAccount]).
// Its balance is what this site owes that one; below zero, it is what that one
// owes, at most the peer's limit, which is the account's credit. The two
// accounts of two sites mirror one another: their balances sum to zero, but
// for what was carried out by one bank and has not yet been confirmed to the
// other.
//
// Banks ask things of one another by instructions, numbered from 1 in each
// direction:
//
//	pay      pay an account of the receiver; the sender owes it
//	charge   take from an authorisation of the receiver, once; the receiver owes it
//	settle   the settlement of a cycle: take up to so much of what the sender owes
//	revoke   give up an authorisation of the sender that was not charged
//
// An instruction stays in the outbox, under its number, until the receiver's
// signed receipt has its outcome; it is sent as often as that takes. The
// receiver carries numbers out in order, each once, and keeps the outcome, a
// refusal like a success, until the sender has said that it has it. Both banks
// enter each number with its outcome into a book: the receiver when it carries
// it out, the sender when it learns of it. A book has a running total, and a
// digest that chains all numbers, contents and outcomes. Every message carries
// its sender's running total, and is signed.
//
// Whatever waits for an answer is set aside in the ledger of the bank that
// asked, by a hold without an end. A confirmation makes the hold a transfer; a
// refusal frees it; nothing else resolves it. A time-out is not a failure:
// nobody is refunded because somebody did not answer.
//
// # Authorisations
//
// A user has its home bank set credits aside for one charge by one other
// site, and gets the bank's signed word for it: issuer, peer, identifier,
// account, amount, when it was issued, for what interval, and the margin. The
// other site's bank accepts the statement by its signature alone, sets the
// amount aside of what the issuer may owe, and can then charge up to it, once,
// whether the issuer can be reached or not. It accepts it for one purpose, such
// as a job: the same statement shown for another is refused. What is charged is
// the payee's when the home bank confirms.
//
// A charge must be made before Issued+Interval, by the clock of the bank that
// charges or by the latest time that the issuer signed, whichever is later.
// Where the clocks are apart, an interval shorter than that may be over for the
// peer when it begins: give a longer one.
//
// The home bank keeps the credits aside until Issued+Interval+Margin by its
// own, or, once the peer has said that the job has ended, for [messages.ChargeWithin] from
// then on: a later charge is refused, and its maker's loss. The margin is [messages.MaxClockSkew] for clocks that are apart, and a
// week for the charge to arrive. As an authorisation ends without a charge the
// peer releases it by an instruction, and its user can have it revoked before:
// the margin is only ever waited for if the peer is cut off.
// What the peer accepted as firm, as for a job that has begun, it does not give
// up before the charge: a user cannot take back what pays for work under way. A
// service of the home site may ask for an authorisation on the word of a user,
// and have it revoked; its statement names the job. Who owns the account, and an
// operator, may have any revoked that binds it. A member who owns no part of the
// account authorises only within a limit that an owner gave it.
//
// Who loses when both are cut off? If a charge that was made in time reaches
// the home bank within the margin, nobody. If it comes later it is refused,
// and the site that charged bears it: it alone knew of the charge, it chose to
// go on working for a bank that it could not reach, it knew to the second by
// when the charge had to arrive, and what it risks is bounded by the limit
// that it gave the peer. The user does not lose: it is never charged more than
// it authorised, more than once, or after it was told that the credits are
// free. The home bank does not lose: it pays out only what is set aside.
//
// # Settlement
//
// At the end of a cycle each bank offers each peer what it owes by its own book. The
// peer accepts as much as it is owed by its own book and as its share of the reserve
// for the other covers; the rest stays owed. An offer of nothing says that nothing is
// to come. What was accepted leaves both accounts of the pair: the payer has it on
// [SettlementAccount], which stands for all other sites together; the receiver has it
// on the [SettledAccount] of the peer, which is below zero by what that peer has
// settled and not paid yet. The sum of these changes in a cycle is the site's
// multilateral position. [Net] compares the signed positions of all sites and finds
// the payments outside the ledgers, at most one fewer than there are sites; debts that
// run in a circle need none. After a payment the operator of the paying site withdraws
// the amount from the one account, and the operator of the other site grants it to the
// other account. What cancels is withdrawn and granted at the same site. Only
// operators do so: nothing that a peer sends frees its share.
//
// Cycles are closed one after another, so a typing error ends only the next one. A
// cycle that was closed by mistake can be taken back while no peer has accepted
// anything in it.
//
// # What a peer can cost
//
// The most is its limit and its share, in whatever order it sends whatever it
// can sign (TestALiarHasItsLimitAndShare). Both are the credit of an account, so
// the ledger refuses what is beyond, whatever the clearing believes. While the
// books of a pair do not agree nothing is taken on credit: no payment, no
// settlement, no authorisation of either side. What was accepted before is
// charged and paid. What a user authorised a peer to charge is the user's to
// lose, and no more than that.
//
// A peer that is silent keeps nobody else waiting. A charge or release has its
// place in the outbox from when the authorisation was accepted, of which a peer
// has at most [MaxVisits]; payments and revocations have a bound of their own.
// Cycles are closed, and authorisations end, whatever waits for a peer.
//
// # Parting
//
// A peer has a standing. It is suspended when the leader finds that its bank has not
// answered for long, and open again at the next thing that it signs, or, where it owes
// answers, at the first of them; until then nothing new begins: no payment, and no authorisation of either side. It is parting when an
// operator says so. What was agreed before goes on, and the debts are settled and paid.
// A bank that has nothing left with the peer says so by an instruction, its last:
//
//	part     the sender has settled everything, and asks for nothing more
//
// The two have parted when each has said so and has the other's answer. The books stay,
// and go on if an operator makes the site a peer again.
//
// A parting without agreement is one command. The operator states the loss, which must
// be what the peer owes by trade and by settlements; an account of this site pays it.
// Whatever was set aside for the peer, or by it, is free; its keys are never trusted
// again. What this site owes it stays on its [SettledAccount]. A later peering needs
// other keys on both sides, and its books begin with number 1: nothing that was signed
// before counts.
//
// # Restoring
//
// A bank that was put back to an older state has lost numbers that its peers have. A
// site has an incarnation, which is higher after each restoration, and which it signs
// with its instructions. In a new incarnation it asks nothing of a peer, and carries
// nothing out for it, before the two books are known to be whole: no number is used
// twice, and no answer is that of another instruction. A peer refuses what an earlier
// incarnation signed. Where a backup is restored with the clock behind, its site learns from
// the peer's signed totals which incarnation the peer knows, and signs a later one for it.
//
// It goes on from the totals of its peer, however many numbers were lost: the running
// totals of both directions, what the peer may still charge, and who parts. The operator of
// the peer confirms them, the peer's bank signs them, and the operator of the restored site
// signs that they are adopted: one record, from which the rest follows. The books go on above
// the peer's last numbers. What this site owes is what the totals come to; the difference is
// booked to the [CorrectionAccount], which also pays what the peer charges by authorisations
// that were lost. Users have what the backup says: which of them gains by it, the totals do
// not say. A payment that waits here under a number which the peer has is given back, because
// nobody knows what became of it; all else that waits is asked again under a new number,
// because the peer does it once.
//
// # Invariants
//
// They hold after every command, for every order in which messages arrive, and
// are checked so in simulation (TestRing).
//
//  1. No credit comes into being or is lost. Every change is one of the ledger,
//     all whose balances sum to zero.
//  2. A number is carried out at most once. Only the number after the last one
//     in the book is carried out, and the book is in the same replicated state
//     as the ledger that it changes: a crash loses both or neither.
//  3. The sender's book is a prefix of the receiver's: it enters only what a
//     receipt says whose digest covers all before it. So the two accounts of a
//     pair differ by exactly the numbers that only the receiver has.
//  4. Users' balances over all banks, less payments and more charges among
//     those numbers, are what was granted to users.
//  5. An instruction's hold is resolved once, and as its outcome says: it
//     leaves the outbox when its outcome is entered, by 3 in the order of the
//     numbers.
//  6. An outcome that a sender may still ask for is remembered: only outcomes
//     are forgotten that the sender has entered, by its own signed word.
//  7. An authorisation is charged at most once and never above its amount:
//     at the home bank it is one hold, which names the peer as its only payee
//     and which the ledger resolves once. That does not rest on the peer.
//  8. A peer never comes to owe more than its limit: the account's credit is the bound,
//     and the amount of each accepted authorisation is set aside of it until
//     its charge is confirmed. Lowering the limit takes nothing back.
//  9. By settlements it comes to owe at most its share of the reserve: the credit
//     of its [SettledAccount].
//
// From 2, 3 and 6 follows that it does no harm to send anything again, late or
// never; that whatever is sent often enough is done follows from the outbox.
//
// For 2 and 3 the answer must be durable before it leaves: receipts,
// authorisations and outgoing instructions are read from state that the log
// has committed. A bank whose disk forgot what it had answered is told so by
// its peers (lost), and changes nothing more on their word until it has adopted theirs.
//
// # Refusals
//
// What no honest peer sends is refused under a name ([Refusal]) and counted.
// [State.Screen] finds what shows without the books, signatures among it, for
// the leader to refuse before it proposes anything; Apply screens again. A
// message whose running total does not match is refused and noted as a dispute
// for an operator. [Compare] then names the first number at which the two books
// differ, from signed pages of them ([State.Lines]); nothing but the operator's new terms
// for the peer closes it, unless they only lower its limit.
//
// # Duties of the caller
//
// Apply the commands to one State and one ledger in the order of one log, and
// capture and restore the two together; [Mark] tells its commands from the
// ledger's. Correct no transfer of the peers' accounts in the ledger, and grant
// them nothing: what is done on one side alone has no mirror on the other. Give
// no user a name that is [Reserved], and let nobody choose identifiers of
// transfers that begin with [TransferPrefix]. A message that comes again may be
// answered by [State.Answered], without a command, and so may one that is refused or says
// nothing new; [State.Learns] tells it of a receipt. Propose the passing of
// time when [State.Due] has come. Send what [State.Outgoing] says again and
// again.
//
// # Cost
//
// An instruction takes a few hundred bytes while it is outstanding, of which
// there are at most [MaxOutstanding] and [MaxVisits] for each peer, and its line about a
// hundred among the latest ten thousand; an authorisation a few hundred while
// it is pending. A message costs one signature to verify, about a tenth of a
// millisecond, and each of its up to [messages.MaxInstructions] numbers about
// ten microseconds at each of the two banks, their ledgers included.
package clearing
