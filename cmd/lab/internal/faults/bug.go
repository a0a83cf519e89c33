package faults

// Bug is a fault of the program that is planted on purpose, to show that the
// checkers find it.
type Bug int

// The bugs, by the invariant that they break.
const (
	Sound         Bug = iota
	RefundTimeout     // 1: a charge that is not answered at once is refunded
	RefundRemit       // 1: a payment to another site that is not answered at once is refunded
	PaidTwice         // 1: a payment that comes again from another site is made again
	NoDedupe          // 2: a submission that comes again is another job
	StaleAttempt      // 2: the word of an attempt that was given up counts for the next
	LeaseIgnored      // 2: an agent lets tasks run on though its lease is over
	DoubleCharge      // 2: a charge that is asked for again has another identifier
	SkippedSync       // 3: entries that are not on disk are acknowledged
	LocalClock        // 4: a replica applies with its own clock
	WaitsForPeers     // 5: a bank serves its own site only when other sites have answered
	SentOnce          // 5: what another site has not answered is not sent again
	Tilted            // 6: the shares of an allocation do not sum to one
	Skim              // 6: a part of what a job pays goes to the wrong account
	NoLimit           // 1: a peer may owe more than its limit, and a dispute changes nothing
	BlindToHoles      // 8: the leader does not look at the health of nodes

	ConfirmedEarly      // 5: an effect is confirmed before the bank has answered
	RoundLate           // 1: a round between jobs reaches the bank after the charge of a job that pays
	SettlementForgotten // 5: a settlement that was not committed is not proposed again
	AskForgotten        // 5: a request that the bank did not answer is never repeated
	DirectiveOnce       // 9: a node is told only once what to end and to suspend
	LeaseEarly          // 9: claims are taken back when the agent's lease ends, while it still ends its tasks
	WallLease           // 9: silence is measured by the clock that is set
	BareClock           // 5: a leader uses its machine's clock alone, without comparing it
	LeaseForever        // 9: the claims of a silent node are never taken back
	GangForever         // 9: a gang that does not come together keeps its slots
	EvictionForgotten   // 9: tasks left on a node when its time to drain is over are not ended
	SettledAnew         // 9: a settlement is computed and proposed once more
	DecidesTwice        // 9: a market decides while its last decision is being committed
	VectorBack          // 9: the vectors of a new leader have lower numbers than the vectors of the last one
	RaiseShort          // 1: the hold of a raised budget is below the budget
	WithdrawnBegins     // 2: an executor begins a task that it has given back
	RerunMoved          // 2: the tasks of a rerun do the first tasks of the earlier job, not the failed ones
	SpentForgotten      // 9: a job whose budget is spent is not discarded
	DamageStays         // 4: a replica does not fetch what its history lacks
	LeapPaid            // 1: tasks pay for the time by which a clock was set ahead
	ForgottenVote       // 3: a replica whose disk was lost votes and counts at once
)
