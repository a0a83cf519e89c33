// Package notify sends notifications about jobs: to people by e-mail through the site's relay, and to programs by
// webhooks. A site sends only what its configuration allows: users choose among the receivers that the operator listed.
//
// # Webhooks
//
// A webhook gets a POST with a JSON object, the [Word] (a notification), and these headers:
//
//	Candor-Notice     identifies the notification: if it comes twice, both have the same value
//	Candor-Timestamp  when it was sent, in seconds since 1970
//	Candor-Signature  sha256= and, in hexadecimal, the HMAC-SHA-256 under the account's secret
//	                  of the timestamp, a dot and the body
//
// Each account has its own secret, derived from the site's secret and the account's name. So a receiver that can check
// one account's notifications cannot forge another's. "candor user secret" prints the secret of an account, which is
// the HMAC's key as text.
//
// An answer of 2xx accepts the notification. After 408, 429 or 5xx, or no answer in time, the notification is sent
// again, for up to a day. Any other answer refuses it. Redirects are not followed.
//
// # What cannot be reached
//
// Only hosts in the configuration are called, by https, or by http on loopback. If a host's name resolves to an address
// that is not public, the host is called only if the configuration lists the address or a network that contains it.
package notify
