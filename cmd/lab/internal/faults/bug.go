package faults

// Bug is a fault that is inserted on purpose, to show that the checkers find it.
type Bug int

// Each of these bugs can be inserted for a test. The number says which invariant the bug breaks.
const (
	Sound         Bug = iota
	RefundTimeout     // invariant 1: a charge without an immediate answer is refunded
	RefundRemit       // invariant 1: a payment to another site without an immediate answer is refunded
	PaidTwice         // invariant 1: a repeated payment from another site is made again
	NoDedupe          // invariant 2: a repeated submission makes another job
	StaleAttempt      // invariant 2: the end of an attempt that was given up counts for the next attempt
	LeaseIgnored      // invariant 2: the tasks of an agent continue after its lease has ended
	DoubleCharge      // invariant 2: a repeated charge has another identifier
	SkippedSync       // invariant 3: entries that are not on the disk are acknowledged
	LocalClock        // invariant 4: a replica applies entries with its own clock
	WaitsForPeers     // invariant 5: a bank serves its own site only when other sites have answered
	SentOnce          // invariant 5: instructions that another site has not answered are not sent again
	Tilted            // invariant 6: the shares of an allocation do not sum to one
	Skim              // invariant 6: a part of a job's payment goes to the wrong account
	NoLimit           // invariant 1: a peer may owe more than its limit, and a dispute changes nothing
	BlindToHoles      // invariant 8: the leader does not check the health of nodes

	ConfirmedEarly      // invariant 5: an effect is confirmed before the bank has answered
	RoundLate           // invariant 1: payments between jobs reach the bank after the charge of a job that takes part
	SettlementForgotten // invariant 5: a settlement that was not committed is not proposed again
	AskForgotten        // invariant 5: a request that the bank did not answer is never repeated
	DirectiveOnce       // invariant 9: a node is told only once which tasks to end and to suspend
	LeaseEarly          // invariant 9: claims are taken back when the agent's lease ends, while the agent is still ending its tasks
	WallLease           // invariant 9: the time of silence is measured with a clock that can be set
	BareClock           // invariant 5: a leader uses only its machine's clock, without comparing it
	LeaseForever        // invariant 9: the claims of a silent node are never taken back
	GangForever         // invariant 9: a gang that does not start in time keeps its slots
	EvictionForgotten   // invariant 9: tasks on a node are not ended when the time to drain it is over
	SettledAnew         // invariant 9: a settlement is computed and proposed twice
	DecidesTwice        // invariant 9: a market decides while its last decision is still being committed
	VectorBack          // invariant 9: a new leader gives its vectors lower numbers than the last leader did
	RaiseShort          // invariant 1: the hold of a raised budget is below the budget
	WithdrawnBegins     // invariant 2: an executor starts a task that it has given back
	RerunMoved          // invariant 2: the tasks of a rerun repeat the first tasks of the earlier job, not the failed ones
	SpentForgotten      // invariant 9: a job whose budget is spent is not discarded
	DamageStays         // invariant 4: a replica does not fetch what its history lacks
	LeapPaid            // invariant 1: if a clock was set ahead, tasks pay for the skipped time
	ForgottenVote       // invariant 3: a replica whose disk was lost may vote at once, and counts for majorities
)
