// Package front answers for several auctioneers of a site as if they were one. Each of them
// is an ordinary auctioneer with a Raft group, a leader and markets of its own; users, agents,
// the depot and other sites ask the site's auctioneer as they do where there is one. A front
// finds out which of them a request is for, passes it on in the name of the account that asks,
// and returns the answer as it came. What is about all of them it asks all, and puts the answers
// together.
//
// A front has no state but which auctioneer had which market when it last asked. There can be
// any number of fronts: each host has one, and any of them answers.
//
// # Which auctioneer
//
//   - a submission and a quote: the one that has the market; without a market, the first
//   - what is about a job: the one that the job's number names, and if that knows no such
//     job, the others, as the job may have gone to one of them with its market
//   - a registration of a node: the one whose markets have the node's classes; the agent then
//     speaks with that one and no front
//   - jobs of other sites, jobs for other sites, offers and join tokens: the first
//   - lists: all, and if one does not answer the list is refused, and says which one that is
//
// # Markets that move
//
// Markets that are applied can give a market to another auctioneer. The one that has it then hands
// it over with its jobs, by itself; the request is answered when that has begun. While both may
// have a job, its number decides who is asked, and a request that would change the job is to
// be sent again. A list has each job once.
//
// # Errors
//
// An error of an auctioneer keeps its kind and its words. While an auctioneer has no leader the
// answer is NotLeader, after which clients ask again. No answer is made up in its place.
package front
