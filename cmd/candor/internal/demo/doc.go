// Package demo is "candor demo", which "make run" starts. It runs a whole site in this process, lets three people
// submit a real workload, and shows the progress. Then it checks that each job finished, that the results are the known
// answers, and that the books balance. Like any user, it sends only requests on the bus. The answers are collected in a
// [Report].
package demo
