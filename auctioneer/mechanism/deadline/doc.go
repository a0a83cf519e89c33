// Package deadline gives slots, in each unit of time, to the tasks with the highest value for the time that they still
// need. A task that is completed by its deadline pays the smallest value that it could have reported and still be
// completed.
//
// # Model
//
// Task i wants l units of one slot between its arrival a and its deadline d. It is worth v if it gets all of them,
// otherwise nothing. A task can be suspended and resumed at no cost. Let e be the number of units that it has had. In
// unit t it is effective if a ≤ t ≤ d, e < l, and the time is still enough: d−t+1 ≥ l−e. The C effective tasks with the
// highest ranks get a unit each. Ties go to the earlier arrival, then to the smaller index.
//
// Rule Paper ranks by v/(l−λe). Rule Monotone, the default, ranks by a level that starts at v/l. In each unit t in
// which a task is served, its level is multiplied by g(t) = 1 + λ/S, the same for all tasks. S is a typical length. The
// problem fixes it, or it is learned: it starts at 4 units, and becomes the mean length of the tasks whose deadlines
// have passed, weighted by the squares of their lengths. At λ = 0 both rules rank by v/l.
//
// A task may take w slots at once in each of its units. Then it ranks by v/(l·w). Slots are given in the order of the
// ranking, and a task that needs more slots than are left is skipped. Under rule Monotone, the levels of the tasks
// served before the first skipped task rise. The level of this task rises also, if some slots were left when its turn
// came. The levels of tasks served after it do not rise. Rule Paper allows only tasks of one slot.
//
// A completed task pays its critical value. Example: if a task reports 10 and would also be completed with any report
// above 4, it pays 4. It pays 0 if any positive report would be enough. The reports of the other tasks stay fixed. If
// the reports with which it is completed are several intervals, the interval around its report counts. In the model no
// other task pays. RunGroups runs several pools of slots independently. NewMechanism makes the mechanism of a live
// market, always under rule Monotone with S fixed.
//
// Conventions: a task longer than its time is never effective and pays nothing (a live market refuses it). A task with
// v = 0 gets slots that are left over.
//
// # Shapes and units
//
// Units are numbered; a and d are inclusive. Values are in any one unit of money, from 0 to Largest. A live market's
// unit is Market.Slot long and starts at a multiple of it. A job competes from the first unit that starts after it
// arrived, in whole units until its deadline, with its length rounded up. Money is rounded once, when the job is
// settled, half to even to the microcredit.
//
// # Guarantees
//
// All guarantees are about what a task reports. The page deploy/docs/honesty.md has measurements of what owners gain by
// commands, such as cancel.
//
// Rule Paper is truthful at λ = 0, but not for λ > 0. Example: with C = 1, λ = 1 and tasks (a, d, l, v) = (2,7,3,6),
// (2,4,2,8), (2,7,4,v), (3,5,3,17), the third is completed only for 8 < v < 16 and v > 17.
//
// Rule Monotone is truthful for every λ. Claim: if a task i is completed with some report, then it is also completed
// with a larger v, an earlier a, a later d or a smaller l, while the others' reports stay fixed. Proof. Let R be the
// run with the first report of i, and R' the run with the better report. Let A(t) be the tasks other than i that rank
// above i in R' in unit t.
//
// (1) Until i is done in R', two things hold at the start of every unit t. The tasks of A(t) are in the same state in
// R, and rank there above all other tasks, including i. And in R' task i has had at least as many units as in R, and
// has at least the same level. This holds when i arrives in R', because nothing differs yet. Suppose it holds in t. The
// same tasks of A(t) are served in both runs: they rank highest, and whether a task is effective depends on its own
// state. If A(t) takes all slots, no other task is served in either run. Otherwise all effective tasks of A(t) are
// served in both runs, and i is served in R'. The level of each served task is multiplied by g(t). So a level that was
// at most the level of i in R' stays at most this level, and the levels of A(t) stay above it. So a task leaves A(t)
// only when it is no longer effective, in both runs. It joins A(t) only when it arrives, with the same level in both
// runs. Last, suppose i is served in R. It ranks below A(t) there, so A(t) has left a slot free. In R' task i has had
// no fewer units, needs no more and has no less time. So, if it is not done, it is effective, and is served in R' too.
//
// (2) So at every unit, i has had at least as many units in R' as in R. Therefore it is completed in R' too. ∎
//
// With tasks of several slots the same claim holds, also for fewer slots. The proof changes as follows. A(t) is served
// alike in both runs, because slots are given in the order of the ranking. If a task of A(t) is skipped, only levels of
// A(t) rise, in both runs. If none is skipped, and slots are left, i is next in R': it is served, or it is the first to
// be skipped. Its level rises in both cases, so no other task overtakes it in either run. And if i is served in R, the
// tasks above it there include A(t), so A(t) leaves it enough slots in R' too. The levels of tasks served after a
// skipped task must not rise: otherwise they would overtake it. A critical value is found as before, with two levels to
// exceed in each unit: one to be served, and one for the task's own level to rise.
//
// Growth must be the same for all tasks, and must not depend on i's report while i competes. Therefore S is learned
// only from tasks whose time is over. Multiplying float64 numbers by g never reverses a ranking, so rounding does not
// break the proof for the allocation. Since a task pays the critical value of a monotone rule, the truth is a dominant
// strategy in v. It is also dominant in a, d and l, because a worse a, d or l never has a smaller critical value. This
// assumes that owners cannot arrive early, and do not receive their result before d. Payments are never above the
// report.
//
// Therefore a live market shows no outputs and logs until the job is settled (Market.HandOver). A job is settled at d,
// or at its end if that is later. If all its competitors always had slots, it is settled as soon as it ends. Such a job
// cannot gain by a later d: d does not change levels, and a job with slots in every unit ends at the same time with any
// d.
//
// The model has limits. A running program can send its results elsewhere, over the network or into a directory that its
// owner can read, and its exit code shows a little. With hand_over: end, everything can be read when the job has ended.
// Then the truth is still dominant in v, a and l, but not in d: a later deadline is cheaper, and the result is
// available early anyway. This was measured with hand_over: end (candor audit, four days of the KTH SP2 log on 4 slots,
// load times 4, 27 jobs, seeds 1 to 3). With the three seeds, 1, 3 and 2 jobs gain by a later deadline: 0.034 [−0.032,
// 0.100], 0.007 [−0.003, 0.018] and 0.017 [−0.006, 0.039] of the value on average, and 0.91 at most. With the default
// and a slot of 30 s, 25 jobs of the same days, seeds 1 to 3: no lie about value, deadline, arrival or length gains
// (250, 125, 100 and 125 lies were tried with each seed). Two colluders gain 0.007, 0.001 and 0.004 on average by their
// best lie, 0.099 at most. A job that is submitted as two halves gains 0.036, 0.008 and 0.018, 0.91 at most; the model
// does not cover such jobs. Over 15 days on 3 slots at twice the load (510 jobs of three draws), no job gains by
// another value, deadline, length or arrival, or by running slowly. Two or three colluders lose on average, and so do
// jobs that nobody needs. A job in two halves loses 0.013 [−0.004, 0.029] of the value. With hand_over: end 78 jobs
// gain by a later deadline, 0.037 [0.019, 0.056] of the value on average and 0.97 at most. The control, in which jobs
// pay what they announce or nothing, gains 0.27 [0.25, 0.29].
//
// The following rules are not truthful; the tests have a counterexample for each: growth in proportion to the work done
// on a task (as in the paper, or g^(e/l)), a bonus for tasks that have started, and a bonus for the time since arrival,
// which no report can change. Under each of them two tasks can change places while both are served or both wait. Then a
// larger report of a task can delay a second task, so that a third task rises above the first and takes its slots.
// Another rule plans ahead and does not start tasks for which higher ranks leave no room. This rule is monotone, but it
// does not increase the total value: on the RICC log, 0.8249 of the value is realised with this rule and without it.
//
// Total value of rule Monotone (λ = 0.6, S learned) was measured as follows. On crowds of ten tasks, relative to the
// offline optimum: 0.911 with exponential values (Paper with λ = 0: 0.902, with λ = 0.6: 0.914), and 0.866 with
// densities within a factor of three (Paper: 0.842, 0.868). On crowds of 300 tasks on ten slots, relative to λ = 0:
// 1.017 and 1.050 (Paper with λ = 0.6: 1.020 and 1.054). On the RICC log with 2,000, 4,018 and 6,500 slots, relative to
// λ = 0: 1.003, 0.999 and 0.998 (Paper with λ = 0.6: 1.011, 1.002, 0.999). So on this log λ matters little with both
// rules. BenchmarkEfficiency reports the numbers of the crowds; `make figures` compares the rules on the log.
//
// Critical values are exact. For λ = 0 they are an order statistic. For λ > 0 the search compares, up to rounding, the
// finitely many values at which the outcome can change. In the search the payer loses ties within 1e-12. A live market
// replays the jobs that it remembers. In the replay, jobs are ranked by their declared lengths, and run for as long as
// they really took.
//
// With tasks of several slots there is no bound on the lost value: the task that ranks first may leave too few slots
// for a task that is worth nearly n times as much, on n slots. Among tasks with the same level, wide ones wait longer,
// because narrow ones fill the slots that are left. A live market counts slots over all nodes, but a task of several
// slots must wait until one node has enough free slots. That may be too late; the task then owes nothing. So the truth
// about a width is best only if the market has a single node. Measured on two nodes of 8 slots with 36 jobs, drawn as
// in package fifo: declaring the same work on fewer or more slots gains −0.0066 [−0.087, 0.074] of the job's value.
//
// Jobs on several nodes are refused. Such a job gets its nodes one after another. The time in which its first slots
// wait for the other nodes is slot time, and this market counts units of slot time. So for prices, a job could be
// completed although its program ran for less time.
//
// A critical value depends on everything up to the deadline: with a smaller value, a job that was completed early would
// have waited, and would have competed with jobs that came later. So SettleAt returns the deadline; a price computed
// earlier would leave out later jobs. There is one exception. If all competing jobs had slots in every unit in which
// the job competed, the job would have had the same slots with any value, and later jobs cannot change that. Such a job
// owes 0 and is settled when it ends.
//
// On a live market only the owner's program knows whether a job was completed. So for prices, a job is completed when
// its program ends for the first time, with any exit code, or when its owner ends an attempt for the first time:
//
//   - If this end was by the deadline of the job, the job owes its critical value. This is so even if another attempt
//     ran later and the market discarded the job.
//   - A job that had all its declared units by its deadline also owes the critical value, however it ended. So an owner
//     gains nothing if the job is late on purpose, or sleeps when its results are there. A unit in which the job ran
//     counts as a whole, including the time that the program took to start. The site measures these units, not the
//     owner.
//   - A job that lost its slots to others before it had all its declared units owes nothing. Attempts that the site
//     ended cost nothing.
//   - With settle: on-completion, a job owes only if it was completed for prices by its deadline.
//
// One gap remains: a job that declares more time than it needs, and sleeps when it has its results, may lose its slots,
// pay nothing, and have its results.
//
// Prices depend on notes in integers, which are committed with the decisions (Notes). A new leader's mechanism reads
// these notes, and decides and prices as the old one would have. But the last notes may be lost with the old leader,
// and units may pass without a leader. Then the following rules hold:
//
//   - Missing notes are computed from the jobs in the job book: their bids, and the times that ended jobs ran.
//   - If no decision is known for a unit, and its jobs wanted more slots than there were, then all of them count as
//     having competed with each other, and are settled at their deadlines.
//   - The number of slots of such a unit is not known. The larger number of the decided units before and after it is
//     used. If each task has one slot, this never makes a price lower. With tasks of several slots it can: in 4 of
//     about 3,100 random markets without a leader in half of their units, a job owed less to another leader than to the
//     one that came back.
//
// Notes cover at most 100,000 jobs. If there are more jobs and the market is never empty, or if the length of the unit
// is changed, the notes start again with the present jobs. From then on prices can be too low; they are never above the
// job's value.
//
// Maintenance windows: Admit refuses a job that cannot meet its deadline in the units in which maintenance leaves
// enough slots. Decisions do not look ahead: in each unit they share the slots of all nodes that take tasks. So a job
// that ranks high, but would run into a window on every node with a free slot, keeps its rank, and a slot stays idle
// until the window is over. The same holds for a suspended job of such a node. A job that misses its deadline for these
// reasons owes nothing.
//
// # Disclosure
//
//	what another account may learn              before the deadline  after it
//	names, values, lengths, deadlines, budgets  no                   no
//	the price of a unit                         no                   no
//	how many jobs, slots and idle slots exist   yes                  yes
//
// Before the deadline, the owner of a job sees the job's rank. The owner also sees what value would be enough, unless
// only one other account competes. After the deadline, the owner sees the job's price.
//
// Owners see everything about their own jobs, operators about all jobs. The truth is the best report whatever the
// others report. A price reveals something about other reports; this cannot be avoided.
//
// # Changes of a bid
//
// No term of a bid may change. The price of a job is computed from the bids of its competitors, so a late change of a
// bid would change the prices of others. A budget only covers the value here, so there is no reason to raise it.
//
// # Errors
//
// Before anything is decided, Invalid is returned, with the task and the field, for numbers that are negative, not
// finite or out of range, a deadline before the arrival, an identifier given twice, and an unknown rule. TooLarge is
// returned for a document of more than MostUnits units, and Expired for a live job that cannot meet its deadline.
//
// # Cost
//
// A run takes time in proportion to the effective tasks of each unit; rule Paper with λ > 0 also sorts the served
// tasks. A critical value takes a replay of the time of one task. The replay follows only the tasks whose state differs
// from the run. It uses the ranks around the last slot, which the run has kept. If these are too few, the run is
// repeated and keeps more. Under a monotone rule one replay without the task is enough: it gives the level that the
// task must exceed in each unit. With tasks of several slots this is a whole run for each payer. Under rule Paper the
// search replays once for each unit that a lower report would lose. Payments uses all processors. `lab bench auction`
// measures both on the RICC log: 318,265 tasks; nearly half of them are completed.
//
// # Source
//
// Y. Gu, J. Tao, G. Li, D. W. Sun, X. Wu, P. P. Jayaraman, R. Ranjan, "A preemptive truthful VMs allocation online
// mechanism in private cloud": equation 5 is rule Paper, table 4 the run, table 5 descend, section 5 the workload and
// the groups. We differ as follows.
//
//   - Theorem 1 is false for λ > 0; rule Monotone takes the place of its rule.
//   - Corollary 1 says that at λ = 0 the value can be smaller than the optimum by a factor of nearly T. A test shows
//     this with the two tasks of the paper's proof.
//   - Figures 1 and 2 show the arrivals by unit and the lengths of tasks. We do not reproduce them, because the paper
//     does not say which 10,000 records of the log it used.
//   - In the example's text users 2 and 3 pay 22. In its tables, and here, they pay 1 and 2.
//   - Tasks of several slots are our addition. Their order is the greedy one of D. Lehmann, L. O'Callaghan, Y. Shoham,
//     "Truth revelation in approximately efficient combinatorial auctions", by the value for a unit of one slot.
//   - Table 5 repeats the run for each candidate value. Under a monotone rule we need one replay.
//   - In R. Porter, "Mechanism design for online real-time scheduling", additive growth is truthful on one processor
//     because served tasks keep their order. Our growth is the multiplicative form, which does not depend on the unit
//     of money and works for any number of slots.
package deadline
