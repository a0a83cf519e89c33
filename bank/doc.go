// Package bank is the actor that keeps a site's credits: one replica of a
// group that shares a [ledger.Ledger] through a mailbox.
//
// The leader alone serves. It answers the commands transfer (services of the
// site and operators), grant and member (operators), and the discoverable
// queries account, accounts, statement, books and status. The other replicas
// answer nothing, so that a request meets the leader or nobody; how each
// replica fares is told by its metrics, and by the leader's status.
//
// Everybody sees their own account and those they are a member of; operators
// and services see all. An answer to a query shows every command answered
// before the query was made: leadership is verified, then the state is read.
//
// Time is the leader's clock, carried by each command. While holds are due the
// leader proposes the bare passing of time, so that they lapse on an idle site
// too.
//
// A command whose outcome is not known is answered Unknown: whoever asks again
// under the same identifiers gets the result, and nothing happens twice. Grants
// are identified by the operator and its key.
package bank
