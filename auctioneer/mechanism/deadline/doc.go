// Package deadline gives slots, unit of time by unit, to the tasks that are
// worth most for what they still need, and charges those that are completed by
// their deadlines the least they could have said.
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
// A task may take w slots at once in each of its units. Then it ranks by v/(l·w), the slots go down the
// ranking, and a task that has no room in what is left is passed over. Under rule Monotone the levels rise of the tasks served before the first
// that is passed over, and of that one, if some slots were left to it; those served after it do not rise. Rule Paper has tasks of one slot.
//
// A task that is completed pays its critical value: the lower end of the
// interval of reports, containing the one it made, in which it is completed,
// others fixed; 0 if any positive report would do. Nobody else pays, in the model. RunGroups
// runs pools of slots that have nothing to do with each other. NewMechanism makes the
// mechanism of a live market, always under rule Monotone with S fixed.
//
// Conventions. A task longer than its time is never effective and pays nothing
// (a live market refuses it). A task with v = 0 gets what is left over.
//
// # Shapes and units
//
// Units are numbered, a and d inclusive. Values are in any one unit of money,
// from 0 to Largest. A live market's unit is Market.Slot long and starts at a
// multiple of it; a job competes from the first that starts after it came, in
// whole units to its deadline, its length rounded up. Its money is rounded
// once, when the job is settled, half to even to the microcredit.
//
// # Guarantees
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
// runs, and i in R'. Then its level is multiplied by g(t), and so is that of any
// other task that is served, in either run; levels that were not above that of i
// in R' are not after it, and those of A(t), multiplied too, stay above. So a
// task leaves A(t) only by ceasing to be effective, in both runs, and joins it
// only by arriving, with the same level in both. Last, if i is served in R, A(t)
// has left a slot free, as i ranks below it there; so i, if not done, is served in
// R' too, being effective: it has had no fewer units, needs no more, and has
// no less time.
//
// (2) So in every unit i has had in R' at least what it has had in R, and it is
// completed. ∎
//
// With tasks of several slots the same claim holds, also for fewer slots. What changes in the proof: A(t) is served alike in both
// runs because slots go down the ranking. If a task of A(t) is passed over, the levels that rise are of A(t) alone, in both runs, and no other
// does. If none is, and slots are left, i is next in R': it is served, or passed over as the first; its level rises in
// either case, and so no other passes it, in either run. And if i is served in R, those that rank above it there include A(t), which therefore
// leaves it enough slots in R' too. That those who are served past a task without room do not rise is what this needs: with growth they
// would pass it. A critical value is found as before, with two levels to outdo in a unit: to be served, and to rise.
//
// The growth must be the same for all, and must not depend on i's report while
// it competes, which is why S is learned from tasks whose time is over. The
// numbers are doubles: multiplying by g is monotone in them too, and a ranking
// is never undone, so that the proof holds to the last bit for the allocation.
// Paying the critical value of a monotone rule makes the truth a dominant
// strategy in v; that worse a, d and l have no smaller critical values makes it
// one in them, for owners who cannot come early and whose result is handed over
// at d at the earliest. Payments are never above the report.
//
// A live market keeps outputs and logs, also while the job runs, until the job is settled
// (Market.HandOver): at d, or when the job ends if that is later or if it met nobody. A job
// that met nobody with a later d would have met nobody with the true one: d moves no
// level, and with slots in every unit a job is done at the same time whatever its d.
//
// Outside of the model: a program can send its results elsewhere while it runs, by the
// network or into a directory that its owner can read, and its exit code tells a little. So
// can all be read when a job has ended with hand_over: end. Then truth is still dominant in v, a
// and l, but not in d: a later deadline is cheaper, and the result is there early all the
// same. Measured with hand_over: end (candor audit, four days of the KTH SP2 log on 4 slots,
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
// What does not work, each with a counterexample in the tests: growth in
// proportion to the work done on a task (as the paper's, or g^(e/l)), a
// bonus for whoever has started, and a boost by the time since arrival, which
// no report can move. With each of them two tasks can change places though both
// are served or both wait; a task that says more then displaces a second one,
// which passes a third, which keeps out the first. Planning ahead, so as not to
// start what those ranking above leave no room for, is monotone but gained
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
// Critical values are exact: λ = 0 takes an order statistic, λ > 0 compares
// exactly among the finitely many values at which something can change, to
// rounding. In the search the payer loses whatever is a tie to 1e-12. A live
// market prices what it has seen: it replays the jobs that it remembers, ranked by
// the lengths declared, for as long as they really took.
//
// With tasks of several slots the total value is at no fixed part of the optimum: one task that ranks first may take the slots of a node, and
// leave too few for one that is worth nearly n times as much, on n slots. Wide tasks of the same rank wait longer than narrow ones, which fill what is
// left. A live market counts slots over all nodes. A task that is to have several is served once a node has gathered them, which
// may be late, or too late: it then owes nothing, and those that it kept waiting had been told the truth about their ranks alone.
// So the truth is best about a width, as about the rest, where nodes are as in the model: one, or all with room for the widest.
//
// A critical value needs the future up to the deadline: a job that was completed
// early would with a smaller value have waited, and then it is a matter of who
// else comes by its deadline what it would have had to say. So SettleAt asks for it
// then; a price asked for earlier leaves out who is yet to come. There is one
// exception, which is settled when the job ends: if in every unit in which it
// competed all that did had slots, then with any value it would have had the same
// ones, nobody who comes later can change that, and it owes 0.
//
// On a live market it is the owner's program that says whether a job was completed.
// So a job is completed, for prices, when its program, with any exit code, or its owner first
// ends an attempt of it: if that was by its deadline, it owes its critical value, also where
// another attempt ran on and the market discarded the job. A job that had all the units that it declared by
// its deadline owes it too, however it ended, so that to be late on purpose, or to sleep when the
// results are there, does not pay; a unit in which it ran counts as a whole, so that the
// time that a program takes to start is the job's. What it had and did not have the site says,
// not its owner. A job that lost its slots to others before it had its time, and attempts that
// the site ended, owe nothing. What remains open: a job that declares more time than it needs,
// and sleeps when it has its results, may lose its slots, and have its results. With settle:
// on-completion a job owes only if it was completed, in the sense above, by its deadline.
//
// What prices go by is noted with the decisions (Notes), in integers, and a market
// made anew with these notes decides and prices as the one that wrote them would
// have. The last notes may be lost with the leader that wrote them, and units may pass
// without a leader. So what no note says is taken from the jobs in the book: their
// bids, and how long those that ended have run. In a unit that nobody decided, as far
// as is known, jobs that were more than the slots count as having met each other, and
// are settled at their deadlines; such a unit counts as having had as many slots as the
// decided one before it or after it, whichever had more. The notes are of at most 100,000 jobs: with more in one
// go the market begins anew with those present, and prices can be too low from then on;
// they are never above the job's value. A change of the unit's length does the same.
//
// # Disclosure
//
//	what another account may learn                                    before the deadline                                after it
//	names, values, lengths, deadlines, budgets, the price of a unit   no                                                 no
//	how many jobs there are, slots and idle slots                     yes                                                yes
//	the own rank, and what value would be enough, to the job's owner  the value unless one other account alone competes  the own price
//
// Owners see all of their own jobs, operators all. To report the truth is best
// whatever the others report, so that nobody needs to know it; a rival who did could
// only harm. The price that is paid is made of what others reported, as it must be.
//
// # Changes of a bid
//
// No term of a bid may change: what others owe is the smallest value that would have been
// enough against the bids that competed, so that a bid changed late would rewrite their
// prices. Budgets only cover values here; there is nothing to raise.
//
// # Errors
//
// Numbers that are negative, not finite or out of range, a deadline before the
// arrival, identifiers given twice and unknown rules are refused as Invalid,
// naming the task and the field, before anything is decided; a document of more
// than MostUnits units as TooLarge; a live job that cannot make its deadline as
// Expired.
//
// # Cost
//
// A run takes time in proportion to the effective tasks of each unit; rule
// Paper with λ > 0 also sorts those served. A critical value takes a replay of
// the time of one task, in which only the tasks whose state changes are
// followed, from the ranks that the run kept around the last slot; if those do
// not reach, the run is repeated with more kept. Under a monotone rule a replay
// without the task is enough: it is completed from the level at which it outdoes
// the last served, unit by unit, for l units. Where tasks have several slots, that is a whole run without the task for each payer. Under rule Paper the search replays once for each
// unit that a lower report would lose. Payments uses all processors. `lab bench
// auction` measures both on the RICC log: 318,265 tasks, of which nearly half are completed.
//
// # Source
//
// Y. Gu, J. Tao, G. Li, D. W. Sun, X. Wu, P. P. Jayaraman, R. Ranjan, "A
// preemptive truthful VMs allocation online mechanism in private cloud":
// equation 5 is rule Paper, table 4 the run, table 5 descend, section 5 the
// workload and the groups. We differ as follows.
//
//   - Theorem 1 is false for λ > 0; rule Monotone takes the place of its rule.
//   - Corollary 1, that at λ = 0 the value can be short of the optimum by a factor of nearly T, is a test with
//     the two tasks of its proof. Figures 1 and 2, how many tasks arrive in each unit and of which
//     lengths, are not drawn anew: they are of 10,000 records of the log, and the paper does not say which.
//   - The example's text has users 2 and 3 pay 22; its tables, and we, 1 and 2.
//   - Tasks of several slots are ours; their order is the greedy one of D. Lehmann, L. O'Callaghan, Y. Shoham, "Truth
//     revelation in approximately efficient combinatorial auctions", with the value of a unit of a slot as the norm.
//   - Table 5 needs the run repeated at each candidate; where the rule is
//     monotone we need one replay.
//   - The order of two tasks served alike is what makes additive growth truthful
//     on one processor in R. Porter, "Mechanism design for online real-time
//     scheduling"; ours is its multiplicative form, which does not depend on the
//     unit of money, for any number of slots.
package deadline
