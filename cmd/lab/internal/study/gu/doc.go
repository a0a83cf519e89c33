// Package gu reproduces the results of Y. Gu, J. Tao, G. Li, D. W. Sun, X. Wu, P. P. Jayaraman and R. Ranjan, "A
// preemptive truthful VMs allocation online mechanism in private cloud": the example of tables 1 to 3, and figures 3 to
// 7 on the RICC log, with payments.
//
// # Model
//
// A record becomes a task for each of its processors. A unit is ten minutes. A task arrives in the unit after its
// submission's unit. Its length l is the run time in units, rounded up; its deadline is a + l + l·X with X exponential
// of mean 2; its value is l·Y with Y exponential of mean 50, drawn separately for each task. Values and payments are
// counted for records 101 to 10,100, the paper's records: they have as many tasks as the paper's table 6 says. The 100
// records before and the 3,000 after compete too. In the paper, all records that arrive before the last deadline
// compete: most of the log.
//
// Offline is the paper's approximation of the best value. It takes the tasks with the largest value per unit of length,
// as long as the lengths fit into the capacity times the duration from the first arrival to the last. It is not an
// upper bound, since tasks also run after the last arrival. Figure 5 divides by a real upper bound, whose duration ends
// with the last deadline.
package gu
