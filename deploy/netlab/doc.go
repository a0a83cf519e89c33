// Package netlab builds sites of several hosts on one machine and runs the real
// binary on each, to see what they do when hosts die, are replaced, or lose sight
// of one another. "make lab" runs its trials, which package trial describes.
//
// # What it builds
//
// Each host has an address, a state directory and a process of its own. Three of
// a site are as candor@.service starts them: a NATS server, a replica of the
// auctioneer and of the bank; the first has the agent of a node too. The others are
// as candor-nodeagent@.service: an agent alone.
//
//	┌ site west, 10.77.1.0/24 ────────────────┐        ┌ site east, 10.77.2.0/24 ───┐
//	│  .1 rack1  .2 rack2  .3 rack3           │        │  .1 rack1  …               │
//	│   NATS      NATS      NATS              │        │                            │
//	│   auction.  auction.  auction.          │        │                            │
//	│   bank      bank      bank              │        │                            │
//	│   node1               .4 node2 … .6     │        │                            │
//	└──────────┬──────────────────────────────┘        └─────────────┬──────────────┘
//	      .254 │ border                                         .254 │ border
//	           └───────── the lab: users, links with delays ─────────┘
//
// Sites reach one another only through the lab, on links that take their time and
// that can be cut and healed (package delay). Clients and peers speak plaintext there;
// between the hosts of a site Raft and NATS routes are TLS, as everywhere.
//
// # On what
//
// Where the machine permits, every host is a network namespace, joined to its site
// by a veth pair and a bridge, and all of that is inside namespaces that the lab
// makes for itself (network, mounts, processes): nothing of it can be seen from
// outside, and when the lab ends, however it ends, the kernel removes it with every
// process in it. That takes root, or the right to make user namespaces, and the
// commands ip, unshare and nsenter.
//
// There each rack can have a small disk of its own, which can be full and can hang
// (Plan.Disk): a loop device, which takes root.
//
// Elsewhere a host is an address of the loopback network, 127.B.<site>.<host>, with
// a B that no other lab has. That is the same for everything but cutting a host off
// from its own site, which it cannot do.
package netlab
