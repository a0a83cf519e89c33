// Package fifo serves jobs strictly in the order in which they came: the
// baseline that everything else is compared with.
//
// # Model
//
// Schedule: jobs of fixed width on one machine. The front job starts as soon
// as so many nodes are free, and nobody starts before it: while a wide job waits
// at the front, nodes that a narrower one behind it could use stay idle
// (head-of-line blocking). Events of an instant and the JSON document are those
// of package rigid.
//
// New: a live market. All weight of a class is on the oldest job with work
// pending there (by arrival, ties by number), so that every slot that comes free
// goes to it. A job that was on hold, or waits for its time or for other jobs, has arrived when
// that is over: none keeps a place for a job that cannot run. The price is posted; see package posted. A width is not waited for:
// tasks start one by one.
//
// # Shapes and units
//
// Those of packages rigid and mechanism.
//
// # Guarantees
//
// No job starts before one that was submitted earlier. No node idles while a
// job that fits is at the front. Runtimes, estimates, budgets and users change
// nobody's place.
//
// Model: a user has one job, for which it can say no other width and under one name; waiting costs
// it money each second. There truth and an arrival at once are best. Measured with candor
// audit (15 days of the KTH SP2 log on 3 slots at twice its load, serial jobs, 573 jobs of three
// draws): no lie about value, deadline or length changes anything, a later arrival loses, and so do
// ghosts and a job that is slow on purpose. Outside of the model: a job in two halves runs on two slots
// and gains 0.135 [0.119, 0.152] of its value, and in four parts 0.147 [0.130, 0.164].
//
// # Disclosure
//
// That of package posted.
//
// # Changes of a bid
//
// Those of package posted: a budget may be raised. No bid has a say in the order, so that
// nothing else needs to change.
//
// # Errors
//
// Those of package rigid, and of package posted on a live market.
//
// # Cost
//
// O(n log n): a million jobs in about a second. A live decision is O(jobs times
// classes).
//
// # Source
//
// The rule is folklore; Ding et al., section 7.2 (figure 13), compare with it.
package fifo
