// Package notify sends words about jobs to people, by e-mail through the site's relay, and
// to programs, by webhooks. A site sends nothing unless its configuration says by what and
// to whom: users choose among receivers that the operator allowed.
//
// # Webhooks
//
// A webhook gets a POST with a JSON object, the [Word], and these headers:
//
//	Candor-Notice     identifies the word: a word that comes twice has the same
//	Candor-Timestamp  when it was sent, in seconds since 1970
//	Candor-Signature  sha256= and, in hexadecimal, the HMAC-SHA-256 under the account's secret
//	                  of the timestamp, a dot and the body
//
// Each account has a secret of its own, which follows from the site's secret and the name of
// the account whose job it is: who can check what one account's receiver gets cannot forge
// what another's gets. "candor user secret" prints the secret of an account. The key of the
// HMAC is the text that the command prints.
//
// An answer of 2xx takes the word; one of 408, 429 or 5xx, or none in time, has it sent again
// later, for a day; any other refuses it. Redirects are not followed.
//
// # What cannot be reached
//
// Only hosts that the configuration lists are asked, by https, or by http on loopback. A host
// whose name leads to an address that is not public is asked only if the configuration lists
// the address itself, or a network that has it: the address is looked at when the connection
// is made.
package notify
