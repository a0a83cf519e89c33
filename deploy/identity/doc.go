// Package identity says who may use which name on a site's NATS servers.
//
// It uses NATS's decentralised security. An operator key signs two accounts: the system
// account, and "CANDOR", which has all of a site's traffic. CANDOR has one scoped signing key
// for each [Role]; the permissions of a role are a template in the account's claims.
// Credentials signed by a role's key carry a name and no permissions of their own. So a name's
// rights follow from its role only, and a leaked credentials file opens only that name.
//
// The templates guarantee:
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
// The key of a name's credentials is derived from the key of its role, the name, and how often
// the name was revoked. So every host issues the same credentials, and a name can be revoked
// without a record of what was issued. Only agents that join by a token (package admission)
// have new keys.
//
// Credentials of users and operators end, by default after 90 days. Their holders renew them
// ([Authority.Renew]) for up to four times as long; then an operator issues new ones. A thief
// can renew a copy for as long, unless it is revoked. A renewal could end the earlier
// credentials, as in OAuth, and so show a theft sooner; but a user's machines have copies of
// one file, and each renews its own. Credentials of nodes, services and peers do not end.
//
// A rotation has two steps, [Authority.Rotate] and [Authority.Finish]; between them two keys
// are valid. [Authority.Revoke] revokes credentials. Running servers follow (package
// natsserver) and close connections that are no longer admitted. The account's first key and
// the system account's key remain as names, in every credentials file and every stream. The
// account's first key opens no connection. Another key may sign for the account in its place,
// by a chain of signatures that begins with the first key. The bank's books have this chain, so
// that no old key can return.
//
// ATTACKS.md lists the known attacks on all this, with what stops each and the test that shows
// it.
//
// A peer of the site is a site of another owner. Each peer has its own account, to which its
// servers connect as leaf nodes, with credentials that open nothing else
// ([Authority.IssueLink]); the site's own credentials open no leaf node. Between that account
// and CANDOR pass only the requests of [messages.PeerVerbs], in the name of the asking site,
// and their replies ([Authority.Tokens]). Two sites exchange their keys by an invitation and
// its answer ([Letter]).
//
// The seeds are in one directory, and only their owner can read the files (0600). Claims are
// made again from the seeds whenever they are opened, so a newer binary's templates apply from
// its next start.
package identity
