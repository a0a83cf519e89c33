// Package door gives the users of a machine, such as a login node, the credentials of their accounts, so that nobody needs a
// file. A user's command connects to a socket of the machine. The kernel tells the door which user that is. The door asks
// the site for the credentials of the account with the user's name, which are valid for an hour, and hands them over:
//
//	candor jobs, as alice --- socket ---> door --- verb "lend", alice ---> admission of the site
//
// The door has credentials of its own ([identity.Door]), which open nothing but this verb, and which an operator can revoke. Whoever
// has them, or is root on the machine, can act as every user of the site, but not as an operator: a site asks for operators' own
// credentials. The seed of a user's key is encrypted for the door on its way.
//
// A user who is removed from the machine gets no more credentials. The user's present credentials end within the hour.
package door
