// Package connections limits how many connections one name (a user, an operator, a node, the holder of a join token)
// has open to a site's NATS servers. Services have no limit. NATS itself can only limit all connections of an account
// together, and all users of a site are in one account.
//
// A [Guard] hears, in the system account, of each connection that is opened or closed on any server of the site. It
// asks each server for its list of connections when it first hears of the server, and every few minutes. Connections
// above the limit, the newest first, are told why and closed half a second after they were opened. If a name has twice
// its limit, they are closed at once.
//
// NATS closes a connection without a reason. So the guard first publishes the reason to the name's own inbox
// ([bus.Refuse]), to which Candor's clients listen. Other clients only see that their connection ends.
//
// A server that died is forgotten after three quarters of a minute; until then its connections count as open.
package connections
