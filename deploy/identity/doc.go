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
//   - Users and nodes share the subject's last token, not their rights: a user
//     called like a node or a market cannot register, exchange, publish a
//     vector or a directive.
//
// The seeds live in one directory, each file for its owner alone (0600). Claims
// are made anew from the seeds whenever they are opened, so that a newer
// binary's templates are in force at its next start.
package identity
