// Package demo is "candor demo", which "make run" runs: it starts a whole site
// in this process, lets three people submit a real workload to it, shows how
// they fare, and then checks everything it can: that each job finished, that
// the results are the known answers, and that the books balance, once by the
// bank's word and once recomputed from every statement.
//
// It uses the site as any user does, through requests on the bus, and looks
// into nothing else. What it learns is gathered into a [Report]; drawing is
// kept apart, in pure functions of what was learned.
package demo
