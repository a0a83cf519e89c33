// Package bank is the actor that keeps a site's credits. A bank is a group of replicas that share a [ledger.Ledger]
// through a mailbox.
//
// Only the leader answers requests:
//
//   - the command transfer, for services of the site and operators;
//   - the commands grant, withdraw, correct, project and credit, for operators;
//   - the commands member, freeze and pay, for owners of the account and operators;
//   - the discoverable queries account, accounts, statement, books and status.
//
// The caller is the last token of the subject. The configuration gives the caller's rank; the ledger checks which
// accounts a user owns. The other replicas answer nothing, so a request reaches the leader or no replica.
//
// Users see their own account and the accounts that they are members of; operators and services see all accounts. Every
// caller may see the books' running totals; only operators can have them recomputed. The answer to a query shows every
// command that was answered before the query: the leader first verifies that it still leads, and then reads the state.
//
// Time is the leader's clock, which each command carries. While holds are due, the leader proposes commands that only
// set the time, so holds also lapse on an idle site. After a time in which no auctioneer could extend holds (nothing
// ran, or clocks were set), the leader holds the time back for some minutes.
//
// A command of a user leaves a record in the journal even if it is refused. So a user who sends more than a hundred
// commands at once, or more than two a second, gets the error Exhausted.
//
// If the outcome of a command is unknown, the answer is Unknown. A repeated request with the same identifiers gets the
// result, and nothing happens twice. Grants, payments and withdrawals are identified by the caller and its key; the
// other commands state the final value.
//
// Each replica keeps its journal in files if the configuration names a directory (package history), and otherwise in
// memory. Operators read the journal page by page (journal). Each replica signs checkpoints of it with the site's key:
// after every ten thousand records, a minute after the first record without a checkpoint, when it stops, and on request
// (checkpoints). A replica that lacks a part of the journal fetches it from the leader (segment). The leader compares
// the latest checkpoint of each replica with its books. If the two contradict each other, acknowledged records were
// lost, and the bank moves no credits until an operator has decided.
//
// # Who asked
//
// For everything that a replica carries out, there is a proof that somebody asked for it, whoever wrote it into the
// log. Every replica checks each link of the chain below when it applies a command, and "candor bank verify" checks
// them again:
//
//   - The key of the site's account is in the keys directory of each host, and its public half is in every
//     credentials file. Nothing about it comes from the log, the journal or an image ([ledger.Root]). It may sign
//     that another key replaces it; the books use the longest chain of such keys.
//   - This key signs which keys sign the credentials of users, operators and services, which of these keys have
//     ended, and which keys of names are revoked. These statements are records, so all replicas use the same ones. A
//     key that has ended proves nothing from then on; what it proved before stays proven.
//   - One of these keys signs the claim in a credentials file that a key belongs to a name.
//   - The name's key signs the bytes of the request, with the time; the signature is valid from an hour before to an
//     hour after this time. A request without a key or identifier of its own is carried out once. For transfers, the
//     name's key signs the opening of a session, and each transfer has a mark of the session (package proof).
//   - The record of the signed request is in the journal before the records that follow from it,
//     and the record of each transfer has its mark. A record without either follows from the
//     rules: a hold that lapses, a grant that expires.
//   - Requests of the banks of other sites are signed by these banks, and the clearing checks the
//     signatures when it applies the requests. What users ask of the clearing is proven like
//     everything else.
//
// If a bank has the site's keys, everything from its first record on is proven: it accepts only books whose first
// record is the site's statement of its keys.
//
// A replica trusts no image of another replica. It carries out the signed requests of the journal again, from the first
// record on that it has not checked itself. The result must equal the journal, byte by byte, and the image's state
// ([ledger.Ledger.RestoreWith]). "candor bank verify" does the same with the same code, for all records.
//
// What a replica has checked itself is its present state, or the last two of its images. It keeps these next to the
// journal, sealed with a secret that follows from the present key of the site's account and the replica's name
// ([history.Checked]). It uses a kept image only if the other image begins with the same records, and otherwise checks
// every record. Example: a replica kept an image of 900 records and gets an image of 1,000. It checks the signatures of
// the last 100. If record 850 differs, it checks all 1,000.
//
// What an attacker who has one of these can do:
//
//   - the log or the ports of a replica: reorder, delay or drop requests; take no credits;
//   - write access to a disk: stop a replica from starting, or make a journal fail its check, or remove the kept
//     images, so that the next start checks everything. A kept image cannot be forged without the keys directory.
//     Changed bytes in an old file of the journal are found when all files are read, at the start and each hour;
//   - read access to a disk, without the keys directory: see who paid whom;
//   - the keys directory of a host, or the memory of a replica: do everything, because an
//     attacker can create an operator; so only their owner can read the files of seeds;
//   - a user's credentials: do what the user may do, until they are revoked;
//   - a service's credentials: make transfers between accounts, but no grants.
//
// The journal does not prove three things: the time of a record (it is the leader's clock, within an hour of each
// signature), the order of requests, and that nothing was left out at its end. A checkpoint proves that all records
// before it are there. So a transfer can only be removed if it was recorded in the last minute before a replica was
// killed, or by an attacker who can also change the file of checkpoints: keep copies of checkpoints elsewhere. What the
// leader finds by itself (a peer is silent, a backup was restored) is recorded without a signature; it moves no
// credits.
//
// # Other sites
//
// The replicated state is the ledger together with a [clearing.State]. Commands that begin with [clearing.Mark] belong
// to the clearing, and an image has the clearing's part first. If the bank has a key to sign with, its leader also runs
// the courier of the clearing (package courier). The courier serves the requests of users (authorise, remit, revoke),
// services (accept, charge), operators (peer, part, reserve, close, net, reconcile, confirm, adopt, peers) and the
// banks of peers (instruct, lines, totals, position). While the leader leads, the courier sends peers the messages that
// they have not answered. A caller who may not pay from an account may not remit from it.
//
// Only the clearing changes the accounts of peers. Another request, a transfer or a correction that would change one is
// refused before it reaches the log. Only the settlement accounts accept grants and withdrawals.
package bank
