// Package nats holds configurations for NATS servers that run on their own, in
// place of those that "candor up" brings along, and makes the part of them that
// follows from a site's keys.
//
//	base.conf     what all have in common: limits, TLS, JetStream, the accounts
//	site.conf     one site alone, on one server
//	cluster.conf  one site, on three servers
//	hub.conf      a site to which the servers of other owners' sites connect
//	leaf.conf     a site that connects to another owner's hub
//	gateway.conf  clusters of one owner, who has one set of keys for both
//
// All include accounts.conf, which [Accounts] writes from the keys that "candor
// site init" made: the operator's claim, the system account, and a resolver with
// the claims of the accounts.
//
// Sites of different owners share nothing but an account for the two of them. Into
// it each site lets what the banks say to one another, and nothing else, so that
// neither side can speak as one of the other's users, hear their replies, or reach
// another actor. The name in these subjects is "$" and the site, which no user can
// have; see package bank/clearing/courier.
package nats
