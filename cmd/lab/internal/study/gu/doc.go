// Package gu reproduces what Y. Gu, J. Tao, G. Li, D. W. Sun, X. Wu, P. P. Jayaraman
// and R. Ranjan, "A preemptive truthful VMs allocation online mechanism in private
// cloud", report: the example of tables 1 to 3, and figures 3 to 7 on the RICC log,
// with payments at full scale.
//
// # Model
//
// A record becomes a task for each of its processors. A unit is ten minutes; a
// task arrives in the unit after its submission's, its length is the run time in
// units, rounded up, its deadline a + l + l·X with X exponential of mean 2, and its
// value l·Y with Y exponential of mean 50, drawn for each task by itself. Values and
// payments are counted of records 101 to 10,100, which are the paper's: their tasks
// are as many as its table 6 says. The 100 records before and the 3,000 after
// compete as well; the paper has all compete that arrive before the last deadline,
// most of the log.
//
// Offline is the paper's approximation of the best value: the densest tasks as long as
// their lengths fit into the capacity times the duration, with the duration from
// the first arrival to the last. It is no bound, since tasks also run after the last
// arrival. What figure 5 divides by is one: the time there ends with the last deadline.
package gu
