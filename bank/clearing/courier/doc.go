// Package courier connects the clearing to the bus: it carries the instructions of a site's bank to the banks of its
// peers, brings their receipts back, and answers requests of peers, users, services and operators.
//
// It runs at the bank's leader, which serves [Courier.Services]. [Courier.Run] sends each peer the messages that the
// peer has not answered, one at a time. While the peer answers, the next message follows at once. While the peer does
// not answer, the message is sent again after waits that double and have a random part. So a peer that cannot be
// reached delays no other peer. A peer that is silent for longer than Config.SilentAfter is suspended. For a moment,
// two replicas may both believe that they lead, and send the same message. This does no harm: a bank that gets a
// message twice carries it out once.
//
// After the restore of a backup, the site gets a new incarnation before it serves requests. Its books are compared with
// the books of each peer. It trades again with a peer if no messages with that peer were lost; otherwise an operator
// decides.
//
// The courier makes no decisions. It screens each request, so that nothing forged reaches the log, and proposes it. It
// signs only what the log has committed.
//
// The name of a peer's bank is "$" and the name of its site, for example "$west"; the connection between the sites must
// guarantee this name. The courier believes only messages that the peer signed. A peer may see the books about itself,
// and the site's position in a closed cycle, which the sites need for netting.
package courier
