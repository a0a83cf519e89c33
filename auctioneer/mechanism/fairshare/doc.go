// Package fairshare gives equal shares to users, not to jobs. Each user gets slots in proportion to its weight, but no
// more than it asks for. Use in the recent past counts also.
//
// # Model
//
// A user's recent use is the average of the slots that it held. The weight of the past halves in each half-life. A
// user's level is (recent use + slots held now) / weight. Without a half-life the past does not count, and the level is
// (slots held now) / weight.
//
// Slots are divided so that the smallest level is as large as possible, then the next, and so on (weighted max-min
// fairness).
//
// Schedule does this for jobs of fixed width, one at a time. It decides at the events of package rigid. While nodes are
// free, the next job is the oldest waiting job of the user with the lowest level. Ties go to the older job. If that job
// does not fit, all others wait for it. Levels change all the time, but decisions are made only at events. The JSON
// document is the document of package rigid with one more key, "half_life".
//
// New makes the mechanism of a live market. In each class the slots are divided among the users. A user asks for as
// many slots as it has tasks pending or running there. Its part is split equally over its jobs with pending tasks. If
// the division leaves nothing for the users with pending tasks, freed slots go to those users among them who have the
// lowest level. Another site counts as one user, because it can give its users any names: its weight is configured as
// "@" and the name of the site. Its part is divided equally among its users. The market decides again from time to
// time, because the weight of the past falls. The price is posted; see package posted.
//
// # Shapes and units
//
// Amounts, demands and use are in slots. Half-lives are in the instance's unit of time; on a live market they are in
// seconds. Claims, parts and weights are by user.
//
// # Guarantees
//
// Division: no user can be given more without taking from a user whose level is not higher. Up to rounding, the parts
// add up to the amount or to all demands. If one user asks for more, the level of another user does not fall below the
// level of the first. Schedule: jobs of a user start in the order of submission, and no node is idle while a job of
// width 1 waits. With equal weights, jobs of the same width and no half-life, users who always have waiting jobs hold
// numbers of slots that differ by at most one, once enough nodes have become free.
//
// A new leader does not know the past use, so at first it decides differently from the old leader. The difference
// halves in each half-life. Use is measured at decisions, so changes between two decisions are missed.
//
// Honesty: the model is as in package fifo; a user is one account. candor audit measured the same jobs. No lie about
// value, deadline or length changes anything. A later arrival, jobs that nobody needs and a slow job lose. The model
// does not cover several accounts: each account has a share, so a job in four parts under four names gains 0.210
// [0.183, 0.237] of its value. A job in two halves under one name gains 0.110 [0.090, 0.131].
//
// Tasks of several slots: a user is counted by slots, and a node gathers the slots of a task. Nothing is proven about
// tasks of several slots. Slots that a node gathers are idle, so the shares are not always optimal. Measured on 60 jobs
// of several slots, drawn as in package fifo: declaring the same work on fewer or more slots gains 42 [−16, 100] times
// the job's value.
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
// Division: O(u log u) in the number of users. Schedule: O(log n) for each event and O(users waiting) for each job
// started. Live: O(jobs times classes + u log u times classes) for each decision.
//
// # Source
//
// Max-min fairness is from Bertsekas and Gallager, Data Networks, section 6.5.2; decayed use is as in the fair-share
// schedulers of computing centres (J. Kay and P. Lauder, A fair share scheduler, 1988). It is our addition that a level
// is the sum of recent use and present use.
package fairshare
