// Package fifo serves jobs strictly in the order of arrival. All other mechanisms are compared with it.
//
// # Model
//
// Schedule runs jobs of fixed width on one machine. The front job starts as soon as enough nodes are free, and no
// job starts before it. While a wide job waits at the front, nodes that a narrower job could use stay idle
// (head-of-line blocking). Events of an instant and the JSON document are as in package rigid.
//
// New makes the mechanism of a live market. All weight of a class is on the oldest job with work pending there (by
// arrival, ties by number), so every freed slot goes to it. If a job was on hold, or waited for its time or for
// other jobs, it counts as having arrived when that was over, so it keeps no place while it cannot run. Tasks start
// one by one, whatever the job's width. The price is posted; see package posted.
//
// # Shapes and units
//
// As in packages rigid and mechanism.
//
// # Guarantees
//
// No job starts before a job that was submitted earlier. No node is idle while the front job fits. Run times,
// estimates, budgets and users do not affect the order.
//
// Model of honesty: a user has one job, cannot misreport its width or use several names, and each second of
// waiting costs money. Then the truth and an immediate submission are best. Measured with candor
// audit (15 days of the KTH SP2 log on 3 slots at twice its load, serial jobs, 573 jobs of three
// draws): no lie about value, deadline or length changes anything, a later arrival loses, and so do
// ghosts and a job that is slow on purpose. Outside of the model: a job in two halves runs on two slots
// and gains 0.135 [0.119, 0.152] of its value, and in four parts 0.147 [0.130, 0.164].
//
// # Disclosure
//
// As in package posted.
//
// # Changes of a bid
//
// As in package posted: a budget may be raised. Bids do not affect the order, so nothing else needs to change.
//
// # Errors
//
// As in package rigid, and on a live market as in package posted.
//
// # Cost
//
// O(n log n): a million jobs in about a second. A live decision is O(jobs times
// classes).
//
// # Source
//
// The rule is common knowledge; Ding et al., section 7.2 (figure 13), compare with it.
package fifo
