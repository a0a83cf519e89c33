// Package siteclock gives the right time of a site even if the clock of one host is wrong, or is set while the site
// runs.
//
// The time of a replicated actor is made in two steps, each by one type:
//
//   - [Host] is the time of a site according to one host: its wall clock, as long as the other hosts agree with it.
//     Hosts send each other their wall clocks, and believe the median. Between two readings time passes at the pace of
//     the monotonic clock. So if the clock of one host of three is set, nothing changes. If no majority agrees, as on a
//     site of one host, a new time is believed after it has lasted for [Patience]; so a clock that is set, and soon set
//     back, changes nothing either. A host that starts does not know the time until it has compared its clock with the
//     clocks of a majority. The exception is a host that continues from an earlier process since the same boot of the
//     machine.
//   - [Steady] is the time of one replicated state. It never goes back behind a committed time, and never stops. If
//     the log has times that are ahead of the clocks, time continues from there, a sixteenth more slowly, until the
//     clocks have caught up. So the site never waits for the clocks. While the leader's host does not know the time,
//     time also continues from the last committed time, and the commands say so. If time moves ahead in one step, a
//     command says by how much, so that nobody pays for time that did not pass. A new state has no time yet: its leader
//     serves nobody until its host knows the time. If a leader did not know the time,
//     the next leader may move the time ahead in one step.
//
// Both are pure, except for the clocks that they get as arguments, so simulations can use them too.
package siteclock
