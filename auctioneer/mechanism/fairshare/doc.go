// Package fairshare serves users, not jobs: each is to have had the same in the
// recent past and now, for its weight, as far as it asks for it.
//
// # Model
//
// A user's recent use is the slots it held, averaged over the past with a
// weight that falls to half after each half-life; so it approaches what the user
// holds, half the distance each half-life. Its level is (recent use + what it
// holds now) / weight. Without a half-life the past does not count, and the
// level is what it holds now.
//
// An amount is divided so that the smallest level is as large as can be, then the
// next, and so on (weighted max-min fairness): water-filling from each user's
// recent use, up to what the user asks for.
//
// Schedule does so with jobs of fixed width, one at a time: at the events of
// package rigid, while nodes are free, the user with the lowest level is next,
// with the oldest job of those it has waiting; ties by the older job. If that job
// does not fit, everybody waits for it. Levels are looked at only at events,
// though they change in between. The JSON document is that of package rigid and
// "half_life".
//
// On a live market each other site is one user, since it can give its users any names: the site has the weight of "@" and its
// name, and its part is divided equally among the names of its users. New makes the mechanism of a live market: in each class, the slots are so
// divided among the users, who ask for as many as they have tasks pending or
// running there; a name's part is split equally over its jobs with work pending.
// If nothing is left for any user with work pending, what comes free goes to those of the lowest level. It asks to be woken
// as the past fades. The price is posted; see package posted.
//
// # Shapes and units
//
// Amounts, demands and use are in slots, half-lives in the units of the
// instance, on a live market in seconds. Claims, parts and weights are by user.
//
// # Guarantees
//
// Division: no user can be given more without taking from one whose level is no
// higher; the parts add up to the amount or to all demands, to rounding; giving
// in a larger demand does not lower anybody else's level below one's own.
// Schedule: within a user, jobs start in the order of submission; no node idles
// while a job of width 1 waits. With all weights equal and jobs of one width,
// users who always have jobs waiting hold, at any instant at which the past does
// not count and nodes have come free often enough, numbers of slots that differ by
// at most one.
//
// A mechanism made anew knows nothing of the past: its decisions agree with
// those of one that went on, to within the recent use that one remembers, which
// fades with the half-life. Use is measured at decisions, so that it is right to
// within what changed between two of them.
//
// Model: as in package fifo, where a user is one account. Measured with candor audit as there: no lie about
// value, deadline or length changes anything; a later arrival, ghosts and a slow job
// lose. Outside of the model: each account has a share, so that a job in four parts under four
// names gains 0.210 [0.183, 0.237] of its value, and in two halves under one name 0.110 [0.090, 0.131].
//
// # Disclosure
//
// That of package posted.
//
// # Changes of a bid
//
// Those of package posted: a budget may be raised. Shares are by user, so that no term of a
// job has a say in them.
//
// # Errors
//
// Those of packages rigid and posted.
//
// # Cost
//
// Division: O(u log u) in the number of users. Schedule: O(log n) an event and
// O(users waiting) for each job started. Live: O(jobs times classes + u log u
// times classes) a decision.
//
// # Source
//
// Max-min fairness is from Bertsekas and Gallager, Data Networks, section 6.5.2;
// decayed use as in the fair-share schedulers in use at computing centres (J. Kay
// and P. Lauder, A fair share scheduler, 1988). That what is held counts together
// with the recent average, in one level, is ours.
package fairshare
