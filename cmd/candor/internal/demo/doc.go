// Package demo is "candor demo", which "make run" starts. It runs a whole site in this process, lets three people
// submit a real workload, and shows the progress of the jobs. Then it checks that each job finished, that the results
// are the known answers, and that the books balance. It also computes the balances itself, from all statements.
//
// The demo uses the site only through requests on the bus, as any user does. It collects the answers in a [Report];
// pure functions draw the report.
package demo
