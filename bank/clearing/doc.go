// Package clearing settles between the banks of different sites, which trust one another for a
// bounded amount only. It is the second half of a bank's replicated state, together with a
// [ledger.Ledger]. It changes only by [State.Apply], has no clock, no I/O and no goroutines,
// and replicas that applied the same commands are byte-identical ([State.Hash]). It has no
// credits of its own: the ledger moves and reserves them, and the clearing remembers why.
//
// # Model
//
// Each bank has one account for each peer in its own ledger ([PeerAccount]). A positive balance
// is what this site owes the peer; a negative one is what the peer owes, at most the peer's
// limit, which is the account's credit. The accounts of two sites mirror each other: their
// balances sum to zero, except for instructions that one bank has carried out and the other has
// not yet had confirmed.
//
// Banks send each other instructions, numbered from 1 in each direction:
//
//	pay      pay an account of the receiver; the sender owes it
//	charge   take from an authorisation of the receiver, once; the receiver owes it
//	settle   the settlement of a cycle: take up to so much of what the sender owes
//	revoke   give up an authorisation of the sender that was not charged
//
// An instruction stays in the outbox under its number, and is sent again, until the receiver's
// signed receipt has its outcome. The receiver carries numbers out in order, each once. It
// keeps the outcome, even a refusal, until the sender has said that it has it. Both banks enter
// each number with its outcome into a book: the receiver when it carries it out, the sender
// when it learns the outcome. A book has a running total, and a digest that chains all numbers,
// contents and outcomes. Every message has its sender's running total, and is signed.
//
// What waits for an answer is reserved in the ledger of the bank that asked, by a hold without
// an expiry. A confirmation makes the hold a transfer; a refusal frees it; nothing else
// resolves it. A time-out is not a failure: nobody is refunded because somebody did not answer.
//
// # Authorisations
//
// A user asks its home bank to reserve credits for one charge by one other site, and gets a
// statement signed by the bank: issuer, peer, identifier, account, amount, when it was issued,
// its interval, and its margin. The other site's bank needs only the signature to accept it. It
// reserves the amount from the issuer's limit and can then charge it, once and at most the
// amount, even if the issuer cannot be reached. An authorisation pays for one purpose, such as
// a job: the same statement for another purpose is refused. The payee gets the charge when the
// home bank confirms.
//
// A charge must be made before Issued+Interval, by the clock of the bank that charges or by the
// latest time that the issuer signed, whichever is later. An interval shorter than the
// difference of the clocks may be over for the peer before it begins: use a longer one.
//
// The home bank keeps the credits reserved until Issued+Interval+Margin by its own clock. If
// the peer says that the job ended, it keeps them only for [messages.ChargeWithin] from then; a
// later charge is refused, and is the peer's loss. The margin is [messages.MaxClockSkew] for
// clocks that differ, and a week for the charge to arrive. The peer releases an authorisation
// that ended without a charge, and its user can have it revoked earlier; so the margin only
// matters if the peer cannot be reached. The peer does not give up an authorisation that it
// accepted as firm, for example for a job that has begun: a user cannot take back the payment
// for work under way. A service of the home site may ask for an authorisation for a user, with
// the job it is for, and may have it revoked. So may an owner of the account, and an operator.
// A member of a project that is not an owner can authorise only within a limit that an owner
// set.
//
// Who loses if both are cut off? Nobody, if a charge that was made in time reaches the home
// bank within the margin. A later one is refused, and the site that charged bears the loss:
// only that site knew of the charge, it chose to work for a bank that it could not reach, it
// knew when the charge had to arrive, and the limit that it gave the peer bounds its risk. The
// user is never charged more than it authorised, more than once, or after it was told that the
// credits are free. The home bank pays only what is reserved.
//
// # Settlement
//
// At the end of a cycle each bank offers each peer what it owes by its own book. The peer
// accepts what it is owed by its book, as far as the other's share of the reserve covers that;
// the rest stays owed. An offer of 0 says that nothing will come. An accepted amount leaves
// both accounts of the pair. The payer books it on [SettlementAccount], which stands for all
// other sites together. The receiver books it on the [SettledAccount] of the peer, whose
// balance is minus what that peer settled and has not paid yet. The sum of these changes in a
// cycle is the site's multilateral position. [Net] compares the signed positions of all sites
// and returns the payments outside the ledgers, at most one fewer than there are sites; debts
// in a circle need none. After a payment, the operator of the paying site withdraws the amount
// from the one account, and the operator of the other site grants it to the other. Amounts that
// cancel are withdrawn and granted at the same site. Only operators do this: no message of a
// peer frees its share.
//
// Cycles are closed in order, so a typing error closes only the next one. A cycle that was
// closed by mistake can be reopened while no peer has accepted anything in it.
//
// # What a peer can cost
//
// At most its limit and its share, whatever it signs and in whatever order
// (TestALiarHasItsLimitAndShare). Both are the credit of an account, so the ledger refuses
// anything above them, whatever the clearing believes. While the books of a pair disagree,
// nothing is taken on credit: no payment, no settlement, no authorisation by either side.
// Earlier authorisations are still charged and paid. A peer can also charge what users
// authorised it to charge, and no more.
//
// A silent peer makes nobody else wait. A charge or release has its place in the outbox from
// the acceptance of its authorisation, and a peer has at most [MaxVisits] of them; payments and
// revocations have a bound of their own. Cycles are closed and authorisations end, whatever
// waits for a peer.
//
// # Parting
//
// A peer has a standing. The leader suspends a peer whose bank has not answered for long. While
// it is suspended nothing new begins: no payment, and no authorisation by either side. The next
// message that it signs ends this; if it owes answers, the first answer does. A peer is parting
// when an operator says so. Then earlier agreements continue, and the debts are settled and
// paid. A bank that has nothing left with the peer says so by its last instruction:
//
//	part     the sender has settled everything, and asks for nothing more
//
// Two sites have parted when each has said so and has the other's answer. The books stay, and
// continue if an operator makes the site a peer again.
//
// A one-sided parting is one command. The operator states the loss, which must be what the peer
// owes by trade and by settlements; an account of this site pays it. Everything reserved for
// the peer, or by it, is freed, and its keys are never trusted again. What this site owes it
// stays on its [SettledAccount]. A later peering needs new keys on both sides, and its books
// begin with number 1: earlier signatures are invalid.
//
// # Restoring
//
// A bank that was restored to an older state has lost instructions that its peers have. Each
// restore gives the site a higher incarnation, which it signs with its instructions. In a new
// incarnation it asks nothing of a peer, and carries out nothing for it, until the two books
// are found equal. So no number is used twice, and no answer belongs to another instruction. A
// peer refuses messages of an earlier incarnation. If a restore ran with the clock behind, the
// site learns from the peer's signed totals which incarnation the peer knows, and signs a later
// one for this peer.
//
// If instructions were lost, however many, the site continues from its peer's totals: the
// running totals of both directions, what the peer may still charge, and who is parting. The
// peer's operator confirms the totals, the peer's bank signs them, and the operator of the
// restored site signs that they are adopted. This is one record, from which the rest follows.
// The books continue after the peer's last numbers. What this site owes is what the totals say;
// the difference is booked to the [CorrectionAccount], which also pays charges of
// authorisations that were lost. Users have what the backup says; the totals do not show which
// of them gained. A waiting payment whose number the peer already has is given back, because
// its outcome is unknown. Every other waiting instruction is asked again under a new number;
// the peer carries it out only once.
//
// # Invariants
//
// These hold after every command, in whatever order messages arrive. A simulation checks them
// (TestRing).
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
// From 2, 3 and 6 it follows that a message may be sent again, late or never without harm. From
// the outbox it follows that what is sent often enough is done.
//
// For 2 and 3 an answer must be durable before it is sent: receipts, authorisations and
// outgoing instructions are read from state that the log has committed. If a bank's disk lost
// answers, its peers refuse its messages as [Lost]. It changes nothing more on their word until
// it has adopted their totals.
//
// # Refusals
//
// A refusal of something that no honest peer sends has a reason ([Refusal]) and is counted. The
// leader calls [State.Screen] before it proposes, to refuse what is wrong in any state of the
// books, such as a bad signature; Apply screens again. A message whose running total does not
// match is refused and noted as a dispute for an operator. [Compare] then finds the first
// number at which the two books differ, from signed pages of both ([State.Lines]). Only new
// terms of the operator for the peer end a dispute, and not if they only lower its limit.
//
// # Duties of the caller
//
// Apply the commands to one State and one ledger in the order of one log, and capture and
// restore the two together; [Mark] tells its commands from the ledger's. Correct no transfer of
// the peers' accounts in the ledger, and grant them nothing: the other site would not mirror
// it. Give no user a name that is [Reserved], and let nobody choose identifiers of transfers
// that begin with [TransferPrefix]. [State.Answered] may answer a message without a command if
// it is repeated, refused or without news; [State.Learns] says whether this holds for a
// receipt. Propose the passing of time at [State.Due]. Send [State.Outgoing] again and again.
//
// # Cost
//
// An outstanding instruction takes a few hundred bytes; each peer has at most [MaxOutstanding]
// and [MaxVisits] of them. Its line in the book takes about a hundred, among the latest ten
// thousand lines. A pending authorisation takes a few hundred bytes. A message costs one
// verified signature, about a tenth of a millisecond, and each of its up to
// [messages.MaxInstructions] numbers costs each bank about ten microseconds, ledger included.
package clearing
