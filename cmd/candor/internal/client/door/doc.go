// Package door gives the users of a machine, such as a login node, the credentials of their accounts. No user needs a
// file of credentials. A user's command connects to a socket of the door. The kernel tells the door the number of this
// user. The door asks the site for the credentials of the account with the user's name. These credentials are valid for
// an hour:
//
//	candor jobs, as alice --- socket ---> door --- verb "lend", alice ---> admission of the site
//
// On the same connection the command can then send up to [cli.RelayRequests] requests. The door sends them to the site
// through a connection of the account, which it keeps open:
//
//	candor jobs, as alice --- socket ---> door --- connection of alice ---> auctioneer of the site
//
// So a short command need not connect to the site by itself. The site allows and refuses the same as if the command
// had connected. A command connects by itself if it has more requests or larger ones, or if the door has too many
// users. Nobody waits for the requests of another user.
//
// The door has credentials of its own ([identity.Door]), which allow only the verb lend, and which an operator can
// revoke. Whoever has these credentials, or is root on the machine, can act as every user of the site, but not as an
// operator: the site does not lend the credentials of operators. The seed of a user's key is encrypted for the door
// while the seed is sent.
//
// A user who is removed from the machine gets no more credentials. The user's present ones end within the hour.
package door
