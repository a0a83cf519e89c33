// Package measure says how well a simulated market did: times, money and welfare,
// over all jobs and by groups of them.
//
// # Units and definitions
//
// Times are in seconds, money in credits. Of the jobs that were completed:
//
//	wait              start of the first task − submission
//	response          finish of the last task − submission
//	bounded slowdown  response / max(run time, 60)
//	severely slowed   bounded slowdown of 5 or more
//
// Utilisation is the slot-seconds used, whether for completed jobs or not, over
// the slots times the span from the first submission to the last finish.
// Payments is what was paid, receipts what was received by other jobs, revenue
// the difference, which the site is left with: 0 is a balanced budget.
//
// Welfare is what the outcome is worth to the owners of the jobs, by private
// values, whatever they bid; v is the value of a slot-second:
//
//	delay     −Σ v·width·response, of completed jobs
//	deadline  Σ v·width·(run time), of the tasks complete by the deadline
//	run       Σ v·width·(run time) of completed jobs − Σ v·width·wait of all
//
// Surplus is welfare less revenue.
//
// Compare sets several markets side by side: welfare in one measure for all, as a
// part of the value of all jobs, wait, bounded slowdown, the part of jobs that starve,
// Jain's index (Jain, Chiu and Hawe 1984) and the Gini coefficient of the users'
// mean speeds (run time by response), and utilisation from the first submission to
// the last. Intervals are jackknife ones over parts of the log.
package measure
