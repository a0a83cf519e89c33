// Package signon lets people into the console by the site's provider of OpenID Connect, so that nobody needs a file of
// credentials.
//
//	browser --- GET begin ---> console --- 303 ---> provider, where the person signs in
//	browser <--- 303 with a code --- provider
//	browser --- GET back, code ---> console --- code, secret, verifier ---> provider --- token ---> console
//	browser --- POST credentials ---> console: the credentials of the person's account, for an hour
//
// A claim of the token names the account. The credentials are those that a door lends to a user ([identity.Authority.Lend]): they
// end after an hour, and nobody can renew them. So the page asks to sign in anew each hour, and a person whom the provider no
// longer knows is out within the hour. An operator's credentials need two things: the site's configuration names the account as
// an operator, and the provider lists the person in the group of operators.
//
// What is tried against it, and what refuses it:
//
//   - A link that signs somebody in as another person, and an answer that is shown twice. The states of a sign-on are computed
//     from a secret in a cookie of the browser that began it; the cookie ends with the first answer. The provider takes a code once,
//     and only with the verifier of this secret (PKCE).
//   - A token of another issuer, for another client, out of date, unsigned, or signed with a shared secret. The library go-oidc
//     refuses it.
//   - A claim that is no name of an account, and the name of an operator.
//   - A page of another origin that asks for credentials. The cookie of the session is SameSite=Strict, and the origin is checked.
//   - A sign-on that leads elsewhere. The browser is sent to the provider and to the first page of the console, and nowhere else.
package signon
