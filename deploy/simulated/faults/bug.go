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
	SkippedSync       // 3: what is not on disk is acknowledged
	LocalClock        // 4: a replica applies with its own clock
	WaitsForPeers     // 5: a bank serves its own site only when other sites have answered
	SentOnce          // 5: what another site has not answered is not sent again
	Tilted            // 6: the shares of an allocation do not sum to one
	Skim              // 6: what a job pays does not all go to whom it is for
	OneReserve        // 7: all peers share one reserve, and a dispute changes nothing
	BlindToHoles      // 8: the leader does not look at the health of nodes
)
