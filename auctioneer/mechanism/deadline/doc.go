// Package deadline gives slots, in each unit of time, to the tasks with the highest value for the
// time that they still need. A task that is completed by its deadline pays the smallest value that
// it could have reported and still be completed.
//
// # Model
//
// Task i wants l units of one slot between its arrival a and its deadline d and
// is worth v if it gets them all, else nothing. Preemption is free. In unit t it
// is effective if a ≤ t ≤ d, the units e it has had are fewer than l, and it can
// still make it: d−t+1 ≥ l−e. The C effective tasks that rank highest get a
// unit each; ties go to the earlier arrival, then to the smaller index.
//
// Rule Paper ranks by v/(l−λe). Rule Monotone, the default, ranks by a level
// that starts at v/l and is multiplied by g(t) ≥ 1 for every task served in t:
// g = 1 + λ/S, the same for all. S is a typical length: fixed by the problem, or
// learned from the tasks whose deadlines have passed, as the mean of their
// lengths weighted by their squares, from a start of 4 units. At λ = 0 both
// rules rank by v/l.
//
// A task may take w slots at once in each of its units. Then it ranks by v/(l·w). Slots are given in
// the order of the ranking, and a task that needs more slots than are left is passed over. Under
// rule Monotone the levels of the tasks served before the first that is passed over rise, and also
// the level of that task, if some slots were left for it. The levels of tasks served after it do not
// rise. Rule Paper allows only tasks of one slot.
//
// A completed task pays its critical value: the lower end of the interval of reports, around the one
// that it made, with which it is completed, the others fixed; 0 if any positive report would do. In
// the model no other task pays. RunGroups runs several pools of slots independently. NewMechanism
// makes the mechanism of a live market, always under rule Monotone with S fixed.
//
// Conventions: a task longer than its time is never effective and pays nothing (a live market
// refuses it). A task with v = 0 gets slots that are left over.
//
// # Shapes and units
//
// Units are numbered; a and d are inclusive. Values are in any one unit of money, from 0 to Largest.
// A live market's unit is Market.Slot long and starts at a multiple of it. A job competes from the
// first unit that starts after it arrived, in whole units until its deadline, with its length
// rounded up. Money is rounded once, when the job is settled, half to even to the microcredit.
//
// # Guarantees
//
// All of them are about what a task reports. What owners gain by commands is measured on the page of markets
// (deploy/docs/markets.md).
//
// Rule Paper is truthful at λ = 0 and not above: with C = 1, λ = 1 and tasks
// (2,7,3,6), (2,4,2,8), (2,7,4,v), (3,5,3,17), the third is completed for
// 8 < v < 16 and v > 17 only.
//
// Rule Monotone is truthful for every λ. Claim: let a task i be completed with
// some report; then it is with a larger v, an earlier a, a later d or a smaller
// l, the others' reports fixed. Proof. Let R be the run with the first report of
// i and R' the run with the better one; write A(t) for the tasks other than i
// that rank above i in R' in unit t.
//
// (1) Until i is done in R', at the start of every unit t the tasks of A(t) are
// in the same state in R and rank there above all others, i included; and i has
// had as many units in R' as in R, or more, at no lower level. This holds when i
// comes in R': nothing differs yet. Suppose it holds in t. What of A(t) is served
// is the same in both runs: they rank highest, and whether one is effective
// depends on its own state. If A(t) takes all slots, nothing else moves in
// either run. If it does not, all that is effective in A(t) is served in both
// runs, and i in R'. Then the level of i is multiplied by g(t), and so is the level
// of every other task that is served, in either run. A level that was at most the
// level of i in R' still is, and the levels in A(t), multiplied too, stay above. So a
// task leaves A(t) only by ceasing to be effective, in both runs, and joins it
// only by arriving, with the same level in both. Last, if i is served in R, A(t)
// has left a slot free, as i ranks below it there; so i, if not done, is served in
// R' too, being effective: it has had no fewer units, needs no more, and has
// no less time.
//
// (2) So in every unit i has had in R' at least what it has had in R, and it is
// completed. ∎
//
// With tasks of several slots the same claim holds, also for fewer slots. The proof changes as
// follows. A(t) is served alike in both runs, because slots are given in the order of the ranking.
// If a task of A(t) is passed over, only levels of A(t) rise, in both runs. If none is, and slots
// are left, i is next in R': it is either served, or the first to be passed over. Its level rises in
// both cases, so no other task overtakes it in either run. And if i is served in R, the tasks above
// it there include A(t), so A(t) leaves it enough slots in R' too. The proof needs that tasks served
// after a passed-over task do not rise: if they did, they would overtake it. A critical value is
// found as before, with two levels to exceed in each unit: one to be served, one to rise.
//
// Growth must be the same for all tasks, and must not depend on i's report while i competes.
// Therefore S is learned from tasks whose time is over. Multiplying doubles by g is monotone too,
// and never reverses a ranking, so for the allocation the proof holds to the last bit. Since a task
// pays the critical value of a monotone rule, the truth is a dominant strategy in v. It is also one
// in a, d and l, because a worse a, d or l never has a smaller critical value. This assumes that
// owners cannot arrive early, and receive their result at d at the earliest. Payments are never
// above the report.
//
// A live market keeps outputs and logs back, also while the job runs, until the job is settled
// (Market.HandOver). This is at d, at the end of the job if that is later, or at once when the job
// ends if it never had a competitor without a slot. Such a job cannot gain by a later d: d does not
// change levels, and a job with slots in every unit ends at the same time whatever its d.
//
// Outside of the model: a running program can send its results elsewhere, over the network or into a
// directory that its owner can read, and its exit code tells a little. With hand_over: end,
// everything can be read when the job has ended. Then the truth is still dominant in v, a and l, but
// not in d: a later deadline is cheaper, and the result is available early anyway.
// Measured with hand_over: end (candor audit, four days of the KTH SP2 log on 4 slots,
// load times 4, 27 jobs, seeds 1 to 3): 1, 3 and 2 jobs gain by a later deadline, 0.034
// [−0.032, 0.100], 0.007 [−0.003, 0.018] and 0.017 [−0.006, 0.039] of the value on average, 0.91
// at most. With the default and a slot of 30 s, 25 jobs of the same days, seeds 1 to 3: no lie about value,
// deadline, arrival or length gains, of 250, 125, 100 and 125 with each seed. Two colluders
// gain 0.007, 0.001 and 0.004 on average by their best lie, 0.099 at most; a job in two halves,
// which the model does not have, 0.036, 0.008 and 0.018, 0.91 at most.
// Over 15 days on 3 slots at twice the load (510 jobs of three draws): no job gains by another value, deadline, length or
// arrival, or by a slow job; two or three colluders and ghosts lose on average, and two halves lose 0.013
// [−0.004, 0.029] of the value. With hand_over: end 78 jobs gain by a later deadline, 0.037 [0.019, 0.056] of the value
// on average and 0.97 at most. The control gains 0.27 [0.25, 0.29].
//
// The following rules are not truthful; the tests have a counterexample for each: growth in
// proportion to the work done on a task (as in the paper, or g^(e/l)), a bonus for tasks that have
// started, and a bonus for the time since arrival, which no report can change. Under each of them
// two tasks can change places while both are served or both wait. Then a task that reports more may
// displace a second task, which overtakes a third, which keeps out the first. Another rule plans
// ahead and does not start tasks for which higher ranks leave no room. It is monotone, but gained
// nothing: 0.8249 of the value with and without, on the RICC log.
//
// Efficiency, as total value, by rule (Monotone at λ = 0.6, S learned): on
// crowds of ten tasks, relative to the offline optimum, 0.911 (Paper λ = 0:
// 0.902, λ = 0.6: 0.914) with exponential values, and 0.866 (0.842, 0.868) with
// densities within a factor of three; on crowds of 300 tasks on ten slots,
// relative to λ = 0, 1.017 (λ = 0.6: 1.020) and 1.050 (1.054); on the RICC log
// with 2,000, 4,018 and 6,500 slots 1.003, 0.999 and 0.998 (1.011, 1.002, 0.999):
// work done counts for little there, whichever the rule. BenchmarkEfficiency
// reports the numbers of the crowds; `make figures` compares the rules on the log.
//
// Critical values are exact: λ = 0 takes an order statistic. λ > 0 compares, up to rounding, the
// finitely many values at which something can change. In the search the payer loses ties within
// 1e-12. A live market prices what it has seen: it replays the jobs that it remembers, ranked by
// their declared lengths, for as long as they really took.
//
// With tasks of several slots there is no bound on the lost value: the task that ranks first may
// leave too few slots for a task that is worth nearly n times as much, on n slots. Of tasks with the
// same rank, wide ones wait longer, because narrow ones fill the slots that are left. A live market
// counts slots over all nodes, and serves a task of several slots once a node has gathered them.
// That may be too late; the task then owes nothing. So the truth about a width is best only if nodes
// are as in the model: a single node, or nodes that all have room for the widest task.
//
// A critical value depends on everything up to the deadline: with a smaller value, a job that was
// completed early would have waited, and have competed with jobs that came later. So SettleAt
// returns the deadline; a price computed earlier leaves out later jobs. There is one exception: if
// all competing jobs had slots in every unit in which the job competed, it would have had the same
// slots with any value, and later jobs cannot change that. Such a job owes 0 and is settled when it
// ends.
//
// On a live market the owner's program says whether a job was completed. So for prices a job is
// completed when its program, with any exit code, or its owner first ends an attempt:
//
//   - If that was by its deadline, the job owes its critical value, even if another attempt ran
//     on and the market discarded the job.
//   - A job that had all its declared units by its deadline owes the critical value too, however it
//     ended. So being late on purpose, or sleeping when the results are there, does not pay. A unit
//     in which the job ran counts as a whole, including the time that the program took to start.
//     The site measures these units, not the owner.
//   - A job that lost its slots to others before it had its time owes nothing. Attempts that the
//     site ended cost nothing.
//   - With settle: on-completion a job owes only if it was completed by its deadline in this sense.
//
// One gap remains: a job that declares more time than it needs, and sleeps when it has its results,
// may lose its slots, pay nothing, and have its results.
//
// Prices depend on notes, which are committed with the decisions, in integers (Notes). A new
// mechanism with these notes decides and prices as the old one would have. The last notes may be
// lost with the leader that wrote them, and units may pass without a leader. Therefore:
//
//   - Missing notes are replaced from the jobs in the book: their bids, and the times that ended
//     jobs ran.
//   - If jobs wanted more slots than there were in a unit for which no decision is known, they count
//     as having competed with each other, and are settled at their deadlines.
//   - Such a unit counts as having had the larger number of slots of the decided units before and
//     after it. Where each task has one slot, this never makes a price lower. With tasks of several
//     slots it can: in 4 of some 3,100 random markets without a leader in half of their units, a job
//     owed less to another leader than to the one that came back.
//
// Notes cover at most 100,000 jobs. With more jobs without a pause, or after a change of the unit's
// length, the market starts again with the present jobs. From then on prices can be too low; they
// are never above the job's value.
//
// # Disclosure
//
//	what another account may learn                                    before the deadline                                after it
//	names, values, lengths, deadlines, budgets, the price of a unit   no                                                 no
//	how many jobs there are, slots and idle slots                     yes                                                yes
//	the own rank, and what value would be enough, to the job's owner  the value unless one other account alone competes  the own price
//
// Owners see everything about their own jobs, operators about all jobs. The truth is the best report
// whatever the others report, so nobody needs to know other reports; a rival who knew them could
// only do harm. The price that a job pays reveals something about other reports; this cannot be
// avoided.
//
// # Changes of a bid
//
// No term of a bid may change. The price of a job is computed from the bids of its competitors, so a
// late change of a bid would change the prices of others. A budget only covers the value here, so
// there is no reason to raise it.
//
// # Errors
//
// Invalid, with the task and the field, before anything is decided: numbers that are negative, not
// finite or out of range, a deadline before the arrival, an identifier given twice, an unknown rule.
// TooLarge: a document of more than MostUnits units. Expired: a live job that cannot meet its
// deadline.
//
// # Cost
//
// A run takes time in proportion to the effective tasks of each unit; rule Paper with λ > 0 also
// sorts the served tasks. A critical value takes a replay of the time of one task. The replay
// follows only tasks whose state changes, and uses the ranks that the run kept around the last slot.
// If these are too few, the run is repeated and keeps more. Under a monotone rule one replay without
// the task is enough: it gives the level that the task must exceed in each unit. With tasks of
// several slots this is a whole run for each payer. Under rule Paper the search replays once for
// each unit that a lower report would lose. Payments uses all processors. `lab bench auction`
// measures both on the RICC log: 318,265 tasks; nearly half of them are completed.
//
// # Source
//
// Y. Gu, J. Tao, G. Li, D. W. Sun, X. Wu, P. P. Jayaraman, R. Ranjan, "A
// preemptive truthful VMs allocation online mechanism in private cloud":
// equation 5 is rule Paper, table 4 the run, table 5 descend, section 5 the
// workload and the groups. We differ as follows.
//
//   - Theorem 1 is false for λ > 0; rule Monotone takes the place of its rule.
//   - Corollary 1 says that at λ = 0 the value can be smaller than the optimum by a factor of nearly
//     T. A test shows this with the two tasks of its proof.
//   - Figures 1 and 2 show the arrivals by unit and the lengths of tasks. We do not reproduce them,
//     because the paper does not say which 10,000 records of the log they show.
//   - In the example's text users 2 and 3 pay 22. In its tables, and here, they pay 1 and 2.
//   - Tasks of several slots are our addition. Their order is the greedy one of D. Lehmann,
//     L. O'Callaghan, Y. Shoham, "Truth revelation in approximately efficient combinatorial
//     auctions", by the value for a unit of one slot.
//   - Table 5 repeats the run for each candidate value. Under a monotone rule we need one replay.
//   - In R. Porter, "Mechanism design for online real-time scheduling", additive growth is truthful
//     on one processor because served tasks keep their order. Our growth is the multiplicative form,
//     which does not depend on the unit of money and works for any number of slots.
package deadline
