// Package shapes studies jobs of a real log with their processors and memory on nodes of a real size: how much slot
// time markets sell, how long jobs wait, and what tasks of different widths receive.
//
// # Model
//
// The log comes from the machine RICC, which had 1,024 nodes with 8 processors and 12 GB each. Its jobs name their
// memory. A slot is one processor with 1.5 GiB, so a node has 8 slots. A job of many processors becomes the fewest
// tasks of equal size that fit on a node, each with the memory of its processors. The tasks start one by one, in every
// market. Values of a second on a slot are uniform from 10 to 100 credits, and bids are honest. Every actor of a site
// takes part, in virtual time.
//
// A sample has the jobs of a week of the log, at first on empty nodes. For example, it has every sixteenth job by
// number, on a sixteenth of the nodes. Some samples have only jobs that fit on one node, because in the log 93 % of the
// slot time belongs to jobs of several nodes, whose tasks take whole nodes. Their number of nodes is such that the work
// is 1.1 times the nodes' slot time in a week.
//
// # Measures
//
// Sold is the slot time in which tasks ran until the end of the week. For jobs that have not ended then, it is the slot
// time of the book: slots that were idle while a node gathered them for a started task count too. Waiting times are of
// all jobs of the sample, and the market goes on until the last one has ended. The waiting time of a job says how much
// later its last task ends than it would end if all tasks started at the submission.
//
// The packing to compare with is made offline, with all submissions and run times known. It places task after task;
// each task gets the earliest time from which some node has enough free slots for the whole run time. This is done by
// slot time, by width and by submission, and the best of the three counts. This packing is not optimal, so a market can
// sell a little more. Nobody can sell more than the bound, which assumes that the machine is one node and that tasks
// can be divided at will.
//
// In the market proportional, the share of a job depends on which jobs wait. So this market also runs on one node that
// has all slots of the machine. There, no task has to wait until a single node has enough free slots.
package shapes
