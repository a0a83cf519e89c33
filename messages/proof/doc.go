// Package proof proves that a request to a site's bank was made by its caller, in exactly these
// words. It is pure: keys are arguments.
//
// # Signatures
//
// A request that issues or manages credits is signed with its maker's own key, which also opens
// its connection to NATS. [Principal.Sign] covers the site, the verb, the caller, the maker's
// clock and the exact bytes of the request. With the signature goes the claim from the
// credentials file ([Token]), in which the site's key for a role says whose key it is. The site
// states which keys sign for a role, under the key of its account ([ReadKeys]).
//
// # Marks
//
// A signature for each transfer would cost more than the transfer. So services and operators
// open a session. They sign an X25519 key made for it, and agree ([Agree]) with the bank's key,
// which the account's key endorses ([CheckExchange]), on a secret that is never sent. Each
// transfer then has a mark: the first 16 bytes of an HMAC-SHA256, under this secret, over the
// bank's own encoding of the transfer ([AppendTransfer]). In a chain, a mark also covers the
// mark before, so known marks cannot be combined into a part of a chain or into another chain.
// Whoever has the bank's private key, which is derived from the private key of the site's
// account, can check marks one by one, now or years later.
package proof
