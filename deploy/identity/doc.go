// Package identity says who may use which name on a site's NATS servers.
//
// It uses NATS's decentralised security. An operator key signs two accounts: the system account, and "CANDOR", which
// has all of a site's traffic. CANDOR has one scoped signing key for each [Role]; the permissions of a role are a
// template in the account's claims. Credentials signed by a role's key carry a name and no permissions of their own. So
// a name's rights follow from its role only, and a leaked credentials file opens only that name.
//
// The templates guarantee:
//
//   - The last token of a request's subject is the name of the credentials it came with. No client can publish a
//     request under another's name.
//   - Replies arrive below the requester's [messages.InboxPrefix], to which nobody else may subscribe. Only services
//     may subscribe to subjects of requests.
//   - A service answers a request only below its caller's inbox. Package bus checks this, because NATS lets a client
//     name any reply subject. A node's agent answers below [messages.LogsReplyPrefix], where NATS lets no other node
//     publish.
//   - A service sends requests under its own name and its site's name, publishes to agents and into the site's
//     streams, and otherwise only answers. All services have the same permissions. So one service could publish into a
//     stream, or to agents, in place of another.
//   - A user, a peer or the holder of a token may publish only to a list of subjects without wildcards. A node's list
//     has almost no wildcards. The lists are made from the table of verbs in package schema; a subject that is not in
//     the table is the site's own. So a user with the name of a node or a market cannot register, exchange, or publish
//     a vector or a directive.
//   - JetStream, streams and the site's own subjects are in the same account as users. If NATS's permissions had a
//     fault, a user could read files and requests of others, and forge messages to agents. The user could not forge
//     credits, because the ledger checks proofs. A separate account would prevent this, but has three faults of its
//     own. NATS would make the reply subjects of services, so a caller could have an answer sent to anybody's inbox,
//     unseen by the service. Agents would have to be allowed to answer on all such subjects. The credentials and
//     streams of a site are bound to the name of the account. Two tests take the place of a separate account. One
//     compares all patterns of clients with all internal subjects. The other publishes, on a running site, to every
//     subject that has a listener. The lists take 60 kB for each connection of a user.
//   - A connection of a user has limits: the size of a message and the number of subscriptions. Package connections
//     limits the number of connections of a name.
//
// # Keys
//
//	operator.nk     signs the two accounts
//	system.nk       the system account; peers' accounts, some roles, and the authority of
//	                the ports between hosts ([Authority.Internal]) derive from it
//	account.nk      signs for the account CANDOR: endorses the bank's key and others
//	account.json    after a rotation of account.nk: statements of earlier keys, not their seeds
//	bank.nk         signs checkpoints and messages to other sites' banks; the file exists
//	                after the first rotation, until then account.nk signs them
//	role-NAME.nk    signs the credentials of a role
//	FILE.old        during a rotation, the earlier key; for bank and account, FILE.next is the next one
//	revoked.json    which names and keys were revoked
//
// The key of a name's credentials is derived from the key of its role, the name, and how often the name was revoked. So
// every host issues the same credentials, and a name can be revoked without a record of what was issued. Only agents
// that join by a token (package admission) have new keys.
//
// Credentials of users and operators end, by default after 90 days. Their holders renew them ([Authority.Renew]) for up
// to four times as long; then an operator issues new ones. A thief who has a copy can also renew it for up to four
// times as long, unless the credentials are revoked. A renewal does not end the earlier credentials, because a user's
// machines have copies of one file, and each renews its own. Credentials of nodes, services and peers do not expire.
//
// A rotation has two steps, [Authority.Rotate] and [Authority.Finish]; between them two keys are valid.
// [Authority.Revoke] revokes credentials. Running servers apply these changes (package natsserver) and close
// connections that are no longer admitted. The account's first key and the system account's key remain as names, in
// every credentials file and every stream. The account's first key opens no connection. Another key may sign for the
// account in its place, if a chain of signatures leads from the first key to it. The bank's books have this chain, so
// that no old key can return.
//
// ATTACKS.md lists the known attacks. For each it names the protection, and the test that shows it.
//
// A peer of the site is a site of another owner. Each peer has its own account, to which its servers connect as leaf
// nodes, with credentials that open nothing else ([Authority.IssueLink]); the site's own credentials open no leaf node.
// Only the requests of [clearing.PeerVerbs], in the name of the asking site, and their replies can pass between that
// account and CANDOR ([Authority.Tokens]). Two sites exchange their keys by an invitation and its answer ([Letter]).
//
// The seeds are in one directory, and only their owner can read the files (0600). Claims are made again from the seeds
// whenever the directory is opened, so a newer binary's templates apply from its next start.
package identity
