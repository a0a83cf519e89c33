// Package admission lets new nodes into a site.
//
// An operator asks for a token for a node ("candor node token node7") and carries it to the machine. The token has a
// NATS credential that expires and allows only one request: to enrol. The agent makes a key, shows the token, and gets
// a signed claim that its key is the node's. The key's seed never leaves the machine, and the token is worthless
// afterwards.
//
// The auctioneer's log has all tokens and who used each. So a token is used only once, even if several hosts of the
// site get it, or if a host crashes meanwhile. The agent may repeat its request: it gets the same answer for the same
// key.
//
// The NATS server refuses a token that is forged, altered or expired. Admission refuses and counts one that was used or
// revoked.
//
// A token is for one node's name. Somebody who gets it before the node can be that node once. So give a token a short
// life and carry it as a secret. If it leaked, revoke it, and the node's credentials too if it was used.
package admission
