// Package signon lets people sign in to the console at the site's provider of OpenID Connect. They then need no file of
// credentials.
//
//	browser --- GET begin ---> console --- 303 ---> provider, where the person signs in
//	browser <--- 303 with a code --- provider
//	browser --- GET back, code ---> console --- code, secret, verifier ---> provider --- token ---> console
//	browser --- POST credentials ---> console: the credentials of the person's account, for an hour
//
// A claim of the token names the account. The credentials are of the kind that [identity.Authority.Lend] makes: they
// end after an hour, and nobody can renew them. So the page asks people to sign in again each hour, and a person whom
// the provider no longer knows loses access within an hour. An operator's credentials need two things: the site's
// configuration names the account as an operator, and the provider lists the person in the group of operators.
//
// These are the attacks on a sign-on, and the defence against each:
//
//   - A link that signs somebody in as another person, and an answer of the provider that is used twice. State, nonce
//     and verifier (PKCE) of a sign-on are computed from a secret, in a cookie of the browser that began it. The first
//     answer deletes the cookie. The provider accepts a code once, and only with the verifier.
//   - A token that is expired, unsigned, signed with a shared secret, for another client or of another issuer. The
//     library go-oidc refuses it.
//   - A claim that cannot be the name of an account, or that names an operator. [Rules] refuse it; an operator must be
//     in the group of operators.
//   - A page of another origin that asks for credentials. The cookie of the session is SameSite=Strict, and the
//     console checks the origin of the request.
//   - A sign-on that sends the browser to another site. The console sends it only to the provider and to the console's
//     first page.
package signon
