// Package fifo serves jobs strictly in the order of arrival. All other mechanisms are compared with it.
//
// # Model
//
// Schedule runs jobs of fixed width on one machine. The front job starts as soon as enough nodes are free, and no job
// starts before it. While a wide job waits at the front, nodes that a narrower job could use stay idle (head-of-line
// blocking). Package rigid defines the order of events at the same time, and the JSON document.
//
// New makes the mechanism of a live market. In each class, the job with pending tasks that arrived first has all the
// weight, so every freed slot goes to it. If several arrived at the same time, it is the one with the smallest number.
// A job that was on hold, or waited for its time or for other jobs, counts as having arrived when the hold or the wait
// was over. Tasks start one by one, also in a job with a width. The price is posted; see package posted.
//
// # Shapes and units
//
// As in packages rigid and mechanism.
//
// # Guarantees
//
// No job starts before a job that was submitted earlier. No node is idle while the front job fits on the free nodes.
// Run times, estimates, budgets and users do not affect the order.
//
// Honesty: in the model a user has one job, cannot misreport its width or use several names, and loses money for each
// second of waiting. Then the truth and an immediate submission are best. Measured with candor audit (15 days of the
// KTH SP2 log on 3 slots at twice its load, serial jobs, 573 jobs of three draws, means with 95 % intervals): no lie
// about value, deadline or length changes anything. An owner loses by submitting later, by submitting jobs that nobody
// needs, and by a job that runs slowly on purpose. The model does not cover jobs in parts: a job in two halves runs on
// two slots and gains 0.135 [0.119, 0.152] of its value; in four parts it gains 0.147 [0.130, 0.164].
//
// Tasks of several slots: on a live market the front task waits until one node has gathered its slots, and later jobs
// run on the other nodes. The gathered slots are idle, so this is not optimal, and no bound is known. Nothing is proven
// about widths: each slot costs the same, but fewer slots may be free sooner. Measured with candor audit --parallel
// wide (the KTH SP2 log on two nodes of 8 slots at four times its load, 75 jobs of three draws): declaring the same
// work on fewer slots, or on more slots than the job uses, gains 36 [−31, 102] times the job's value.
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
// Schedule takes O(n log n), about a second for a million jobs. A decision of a live market takes O(jobs times
// classes).
//
// # Source
//
// The rule is common knowledge; Ding et al., section 7.2 (figure 13), compare with it.
package fifo
