// Package demo is "candor demo", which "make run" starts. It runs a whole site in this process, lets three people
// submit a real workload to it, and shows the progress of the jobs. Then it checks that each job finished, that the
// results are the known answers, and that the books balance. The bank reports whether they balance, and the demo also
// computes this from all statements.
//
// The demo uses the site as any user does, only through requests on the bus. It collects the answers in a [Report];
// pure functions draw the report.
package demo
