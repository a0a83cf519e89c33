// Package admission lets new nodes into a site.
//
// An operator asks for a token for a node ("candor node token node7") and carries
// it to the machine. What the token holds is a NATS credential that expires, and
// with which one request is possible, to enrol; the request is made in the name of
// the token. The agent makes a key, proves the token, and gets back a signed claim
// that its key is the node's: the key's seed never leaves the machine, and the
// token is worth nothing afterwards.
//
// Which tokens there are, and who used each, is in the auctioneer's log: a token is
// used once, whichever host of the site it is shown to, whoever crashes meanwhile.
// The agent may repeat its request, and gets the same answer, as its key is the
// same; any other key is refused.
//
// A token that is forged, altered or expired does not get as far: the NATS server
// refuses it. One that was used, or revoked, is refused here and counted.
//
// A token is for one node's name. Who has it before the node does can be that node
// once, which then shows: the node's own agent is refused. So give it a short life,
// carry it as a secret, and where it leaked revoke it, and the node's credentials
// if it was used.
package admission
