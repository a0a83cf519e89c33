// Package proof proves that the caller made a request to a site's bank, with exactly these bytes. It reads no files and
// no clock; the caller passes the keys.
//
// # Signatures
//
// A request that issues or manages credits is signed with the sender's own key, which also opens the sender's
// connection to NATS. The signature ([Principal.Sign]) covers the site, the verb, the caller, the sender's clock and
// the exact bytes of the request. The request also carries the claim from the credentials file ([Token]). The claim
// says to whom the sender's key belongs. The site has a signing key for each role, such as user or operator, and has
// signed the claim with one of these keys. The list of signing keys is itself signed with the key of the site's account
// ([ReadKeys]).
//
// # Marks
//
// A signature for each transfer would cost more than the transfer. So services and operators open a session: they make
// an X25519 key and sign it. The bank has an X25519 key too, which is signed with the key of the site's account
// ([CheckExchange]). From the two keys, both sides compute a secret that is never sent ([Agree]). Each transfer then
// has a mark: the first 16 bytes of an HMAC-SHA256 with this secret, of the bank's own encoding of the transfer
// ([AppendTransfer]). In a chain, a mark also covers the mark before it. So nobody can make a part of a chain, or
// another chain, from known marks. The bank's private key is derived from the private key of the site's account.
package proof
