// Package identity says who may speak as whom on a site's NATS servers.
//
// It is NATS's decentralised security: an operator key signs two accounts, the
// system account and "CANDOR", in which all of a site's traffic runs; CANDOR
// has one scoped signing key for each [Role], and the permissions of a role
// are a template in the account's claims. Credentials that a role's key signs
// carry a name and no permissions of their own, so a name's rights follow from
// its role alone, and a leaked credentials file opens nothing but that name.
//
// What the templates hold to:
//
//   - The last token of a request's subject is the name of the credentials it
//     came with. No client can publish a request under another's name.
//   - Replies arrive below [messages.InboxPrefix] of the requester, which
//     nobody else may subscribe to; nor may anyone but a service subscribe to a
//     subject that carries requests.
//   - A service answers a request only below its caller's inbox, which package bus
//     sees to: NATS lets a client name any reply subject. A node's agent answers
//     below [messages.LogsReplyPrefix], where NATS lets no other node publish.
//   - A service asks under its own name and its site's, publishes to agents and into
//     the site's streams, and otherwise only answers. All services have the same
//     permissions, so that one could publish for another into a stream or to agents.
//   - What a user, a peer or the holder of a token may publish is a list of
//     subjects without wildcards, and what a node may is nearly one. They are made from the
//     table of verbs in package schema:
//     a subject that is in no row is the site's own. So a user called like a node or a
//     market cannot register, exchange, publish a vector or a directive.
//   - JetStream, streams and the site's own subjects are in the same account as users. An
//     account of their own, from which users' account imports the services, would bear a
//     fault of NATS's permissions, at which now a user could read files and requests of
//     others and forge what agents hear, though no credits: the ledger proves those. But
//     then NATS makes the reply subjects of services, and so a caller could have an answer
//     sent into anybody's inbox, which a service could not see; agents would need leave to
//     answer at all such subjects; and the credentials and streams of a site are bound to
//     the name of the account. Two tests stand in place of the account: one holds all
//     patterns of clients against all internal subjects, one publishes, on a site that
//     runs, to every subject that somebody listens to. The lists cost each connection of a
//     user 60 kB.
//   - A connection of a user has bounds of its own: the size of a message and the
//     number of subscriptions. How many connections a name has is bounded by package
//     connections.
//
// # Keys
//
//	operator.nk     signs the two accounts
//	system.nk       the system account; peers' accounts, some roles, and the authority of
//	                the ports between hosts ([Authority.Internal]) derive from it
//	account.nk      speaks for the account CANDOR: endorses the bank's key and others
//	account.json    after a rotation of it, the keys before: their words, not their seeds
//	bank.nk         signs checkpoints and what goes to other sites' banks, once it was
//	                rotated; before, the account's key does
//	role-NAME.nk    signs the credentials of a role
//	FILE.old        the key before, during a rotation; of the bank and the account, FILE.next
//	revoked.json    what was revoked
//
// The key of a name's credentials follows from the key of its role, the name, and
// how often the name was revoked: so every host issues the same, and a name can be
// revoked without a record of what was issued. Only agents that join by a token
// (package admission) have keys that are nobody else's.
//
// Credentials of users and operators end, after 90 days if the site says nothing else,
// and their holders renew them before ([Authority.Renew]): for four times that, after which
// an operator issues new ones. A thief can renew a copy for as long, unless it is revoked.
// That a renewal ends the credentials before it, as in OAuth, would show a theft earlier;
// but a user's machines share one file's credentials, and each renews its copy by itself.
// Those of nodes, services and peers have no end.
//
// A rotation has two steps, [Authority.Rotate] and [Authority.Finish], between
// which two keys are good, and [Authority.Revoke] takes credentials back. Servers
// that run follow (package natsserver): what is admitted no more is cut off.
// The first key of the account, and the key of the system account, stay as names, in every
// credentials file and of every stream. The account's first key opens no connection, and
// another may speak for the account in its place: by a chain of signatures that begins
// with the first, and that the bank's books have, so that no old key comes back.
//
// What is known to be tried against all this, what refuses it, and the test that
// shows it, is in ATTACKS.md.
//
// Each peer of the site, which is a site of another owner, has an account of its own, to
// which its servers connect as leaf nodes with credentials that open nothing else
// ([Authority.IssueLink]); credentials of the site's own open no leaf node. Between
// that account and CANDOR pass the requests of [messages.PeerVerbs], in the name of
// the site that asks, and the replies to them ([Authority.Tokens]). Two sites get to
// know one another's keys by an invitation and its answer ([Letter]).
//
// The seeds live in one directory, each file for its owner alone (0600). Claims
// are made anew from the seeds whenever they are opened, so that a newer
// binary's templates are in force at its next start.
package identity
