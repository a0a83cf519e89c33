// Package measure says how well a simulated market did: times, money and welfare, over all jobs and by groups of jobs.
//
// # Units and definitions
//
// Times are in seconds, money in credits. For the jobs that were completed:
//
//	wait              start of the first task − submission
//	response          finish of the last task − submission
//	bounded slowdown  response / max(run time, 60)
//	severely slowed   bounded slowdown of 5 or more
//
// Utilisation is the number of slot-seconds used, for completed jobs or not, divided by the slots times the span from
// the first submission to the last finish. Payments are the credits that jobs paid, and receipts the credits that jobs
// received from others. Revenue is the difference, which is left with the site. If it is 0, the budget is balanced.
//
// Welfare is the worth of the outcome to the owners of the jobs. It is computed from their private values, and not from
// their bids. v is the value of a slot-second:
//
//	delay     −Σ v·width·response, of completed jobs
//	deadline  Σ v·width·(run time), of the tasks complete by the deadline
//	run       Σ v·width·(run time) of completed jobs − Σ v·width·wait of all
//
// Surplus is welfare minus revenue.
//
// Compare compares several markets. It uses the same measure of welfare for all markets, divided by the value of all
// jobs. It also compares the wait, the bounded slowdown, the fraction of jobs that starve, and the utilisation from the
// first submission to the last one. Its intervals are jackknife intervals over parts of the log.
package measure
