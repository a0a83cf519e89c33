// Package nats holds configurations for NATS servers that run separately, instead of the servers inside "candor up". It
// also makes the part of them that depends on a site's keys.
//
//	base.conf     common settings: limits, TLS, JetStream, the accounts
//	site.conf     one site, on one server
//	cluster.conf  one site, on three servers
//	hub.conf      a site to which the servers of other owners' sites connect
//	leaf.conf     a site that connects to another owner's hub
//	gateway.conf  clusters of one owner with the same keys
//
// All include accounts.conf. "candor site nats" prints it, and [Accounts] makes it from the site's keys: the operator's
// claim, the system account, and a resolver with the claims of the accounts, with one for each peer. Write it again,
// and reload the servers, whenever a peer joins or a key is rotated.
//
// "candor site init" makes the certificates: ca.pem is the site's authority, host.pem and host.key are for the host
// ("candor site certify" adds the name under which peers reach a hub), and peers.pem has the authorities of all peers,
// one after another. The invitation that "candor site invite" writes has a hub's credentials for a peer. After "candor
// site join" they are in peers/NAME.creds in the directory of the peer's configuration; leaf.conf expects them as
// peer.creds.
//
// The process of the bank, "candor bank", enforces how many connections an account may have open (limits.connections of
// the site's configuration), if it has the site's keys. It does so for all servers of the system account to which it is
// connected.
//
// Sites of different owners share only one account, for the two of them. Each site lets only the requests of
// [clearing.PeerVerbs] into it. So neither site can speak as one of the other's users, hear their replies, or reach
// another actor.
package nats
