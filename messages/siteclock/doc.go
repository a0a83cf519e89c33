// Package siteclock tells a site's time even if the clock of a host is wrong, or is set while
// the site runs.
//
// The time of a replicated actor has two rules:
//
//   - [Host] is the time of a site as one host tells it: the wall clock's, as long as
//     the hosts of the site agree with it. Hosts tell one another their wall clocks.
//     The median is believed; between two readings time passes at the pace of the
//     monotonic clock. So a clock that is set on one host of three changes nothing. Where
//     no majority of hosts agrees, as on a site of one host, a new time is believed
//     after it has lasted for [Patience]: a step back and forth changes nothing either.
//     A host that starts does not know the time until it has compared its clock with a
//     majority's, or goes on from an earlier start of the same boot of the machine.
//   - [Steady] is the time of one replicated state: it never goes back behind what was
//     committed, and it never stands still. Where a log holds times that are ahead, time
//     goes on from there, a sixteenth more slowly until the clocks have caught up. So
//     nothing of the site waits for the clocks. Time goes on from there also while the
//     host of the leader does not know the time; its commands say so. Where time goes ahead in
//     one step, a command says by how much, so that nobody pays for a time that did not
//     pass. The next leader may make that step, if it knows what the last one did not.
//
// Both are pure except for the clocks that they are given, so simulations use the same rules.
package siteclock
