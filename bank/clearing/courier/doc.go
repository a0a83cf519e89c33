// Package courier is the clearing's shell: it carries the instructions of a
// site's bank to the banks of its peers and their receipts back, and answers
// what peers, users, services and operators ask of the clearing.
//
// It runs where the bank's leader runs. [Courier.Services] is what the leader
// serves; [Courier.Run] sends each peer what it has not answered, again and
// again, until its context ends: one message at a time to each peer, at once
// while the peer answers, and after waits that double, with jitter, while it
// does not. A peer that is cut off costs a request now and then, and delays
// nobody else. A peer that is silent for longer than Config.SilentAfter is suspended; so
// that this is seen, a peer to which there is nothing to say is greeted four times as
// often. Two replicas that both believe for a moment that they lead do
// no harm: every message may come twice.
//
// Where a backup was restored the site gets a new incarnation before the first service is
// served, and is compared with each peer; it trades again with those of whose books nothing
// was lost. What was lost waits for an operator.
//
// Nothing is decided here. What a message asks for is screened, so that
// nothing forged reaches the log, then proposed; what is signed is what the
// log has committed. A message that was carried out before is answered without
// the log.
//
// A peer's bank speaks as "$" and the name of its site, which the connection
// between the sites must bind; what it says is believed for its signature
// alone. A peer is shown the books about itself, and the site's position with
// all its peers in a closed cycle, without which a federation cannot net.
package courier
