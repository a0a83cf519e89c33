// Package fairshare gives equal shares to users, not to jobs. In proportion to its weight, each user gets
// the same use, counting the recent past and the present, as far as the user asks for it.
//
// # Model
//
// A user's recent use is the average of the slots that it held. The weight of the past falls to half after
// each half-life, so recent use approaches what the user holds, by half of the distance in each half-life.
// A user's level is (recent use + slots held now) / weight. Without a half-life the past does not count,
// and the level is (slots held now) / weight.
//
// Slots are divided so that the smallest level is as large as possible, then the next, and so on (weighted
// max-min fairness). This is water-filling from each user's recent use, up to what the user asks for.
//
// Schedule does this for jobs of fixed width, one at a time. At the events of package rigid, while nodes
// are free, the user with the lowest level is next, with its oldest waiting job; ties go to the older job.
// If that job does not fit, all others wait for it. Levels change between events, but are used only at
// events. The JSON document is the document of package rigid with the additional key "half_life".
//
// New makes the mechanism of a live market. In each class the slots are divided among the users. A user asks
// for as many slots as it has tasks pending or running there, and its part is split equally over its jobs
// with work pending. If nothing is left for users with work pending, freed slots go to the users with the
// lowest level. Another site counts as one user, because it can give its users any names: it has the weight
// of "@" and its name, and its part is divided equally among the names of its users. The market asks to be
// woken as the past fades. The price is posted; see package posted.
//
// # Shapes and units
//
// Amounts, demands and use are in slots, half-lives in the units of the
// instance, on a live market in seconds. Claims, parts and weights are by user.
//
// # Guarantees
//
// Division: no user can be given more without taking from a user whose level is not higher. Up to rounding,
// the parts add up to the amount or to all demands. A larger demand of one user does not lower the level of
// another below its own. Schedule: jobs of a user start in the order of submission, and no node is idle
// while a job of width 1 waits. With equal weights, jobs of the same width and no half-life, users who
// always have waiting jobs hold numbers of slots that differ by at most one, once enough nodes have become
// free.
//
// A new mechanism does not know the past, so at first its decisions differ from the old one's. The
// difference fades with the half-life. Use is measured at decisions, so changes between two decisions are
// missed.
//
// Model: as in package fifo, where a user is one account. Measured with candor audit as there: no lie about
// value, deadline or length changes anything; a later arrival, ghosts and a slow job
// lose. Outside of the model: each account has a share, so that a job in four parts under four
// names gains 0.210 [0.183, 0.237] of its value, and in two halves under one name 0.110 [0.090, 0.131].
//
// # Disclosure
//
// As in package posted.
//
// # Changes of a bid
//
// As in package posted: a budget may be raised. No term of a job affects shares, because shares are by user.
//
// # Errors
//
// As in packages rigid and posted.
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
// and P. Lauder, A fair share scheduler, 1988). Adding the present use to the recent average, in one level, is
// ours.
package fairshare
