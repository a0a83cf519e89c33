// Package connections bounds how many connections one name has open to a site's NATS
// servers at once: a user, an operator, a node, the holder of a join token. Services
// have no bound. NATS itself can bound only all connections of an account together,
// and all users of a site are in one.
//
// A [Guard] hears in the system account of each connection that is opened and closed,
// on whichever server of the site, and asks each server for the list of its connections
// when it first hears of the server, and every few minutes. What is over the bound is
// told why, and cut: the newest first, half a second after it was opened, so that a
// command that ends by then succeeds; at once where a name has twice its bound.
//
// NATS cuts without a word. So the guard publishes the reason to the name's own inbox
// ([bus.Refuse]), which Candor's clients listen to; other clients see their connection
// end.
//
// A server that dies with its connections is forgotten after three quarters of a
// minute; so long its connections count as open.
package connections
