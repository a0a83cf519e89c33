// Package proof has what a request to a site's bank is proven with: that its maker
// asked for it, in these words. It computes only: keys are given to it.
//
// # Signatures
//
// A request that issues or manages credits is signed by its maker's own key, the one
// that opens its connection to NATS: [Principal.Sign] covers the site, the verb, the
// caller, the maker's clock and the exact bytes of the request. Beside the signature
// goes the claim from the credentials file ([Token]), in which the site's key for a
// role says whose key it is. Which keys sign for a role the site says itself, under
// the key of its account, which stays for ever ([ReadKeys]).
//
// # Marks
//
// A signature for each transfer would cost more than the transfer. Services and
// operators open a session: they sign an X25519 key made for it, and agree with the
// bank's, which the account's key vouches for ([CheckExchange]), on a secret that is
// never sent ([Agree]). Each transfer then has a mark, the first 16 bytes of an
// HMAC-SHA256 under this secret over the bank's own encoding of it
// ([AppendTransfer]); within a chain a mark covers the one before too, so that
// neither half a chain nor another one can be made of marks that were seen. Marks
// can be checked one by one, now or years later, by whoever has the bank's private key,
// which is derived from the private key of the site's account.
package proof
