// Package messages is what Candor's actors share: quantities, identifiers, names, subjects, proofs and the kinds of
// error. Actors import this package and its vocabularies, and never import one another. The vocabularies are:
//
//	wire      how a message is encoded
//	job       what users say about jobs: their description, requests and answers
//	market    what a site says about its markets and nodes: quotes, prices, shares and estimates
//	agent     what a node's agent and the leader say to one another, and the streams of tasks
//	money     accounts, transfers and the journal of the bank
//	clearing  what sites say to one another: jobs and payments
//
// Each vocabulary uses only vocabularies above it in this list. Where a file uses the name of a vocabulary for
// something else, it imports the vocabulary with "msg" at the end of its name, as in jobmsg.
//
// # Identity
//
// The last token of a request's subject is the account that sends the request. NATS permissions let a connection use
// only its own account there. No field of a payload is trusted to say who the sender is.
//
// # Words
//
// Work:
//
//	job         what a user submits, bids for and pays: stages of tasks. Its number is a [JobID]
//	stage       a part of a job whose tasks are alike; it may wait for other stages (an array job of Slurm)
//	task        one program of a stage, run by one process on one slot
//	attempt     one run of a task, numbered from 1; only the latest attempt of a task counts
//	gang        a stage whose tasks all start together, or not at all
//	array       the list of indexes that the tasks of a stage get
//	limit       a bound on what a task may use (time, memory), or an account may do (pending jobs, spending)
//	suspend     a task gives up its slot and is frozen on its node; resume: it gets a slot there again and goes on
//	requeue     a task is ended, and its next attempt runs it again from its beginning
//	discard     a mechanism ends a job because it will not complete the job
//
// Machines:
//
//	site        one cluster with its own auctioneer, bank and users; the sites that are peers form a federation
//	peer        another site with which this one exchanges jobs and credits
//	node        a machine that runs tasks; its agent speaks for it
//	class       a kind of slot (cpu, gpu); markets allocate classes
//	slot        a place for one running task on a node
//	session     the time from an agent's registration to its next one; a later session fences the earlier ones
//	cell        the control group that holds the processes of one task
//	drain       a node takes no new tasks, and finishes the tasks that it has
//	eviction    the leader ends the tasks that still run on a node when its time to drain is over
//	probe       an empty task of the site that tests whether a node works
//	quarantine  a node on which tasks fail that succeed elsewhere gets no work, until a probe ends well
//
// Allocation:
//
//	market      a set of slots that one mechanism allocates (a partition of Slurm, with prices)
//	mechanism   the rule of a market: who gets slots, and what they cost
//	bid         what a job declares: budget, utility or valuation, deadline, length, width
//	budget      the most that a job may cost
//	utility     what a job says each class is worth to it, as weights
//	valuation   the worth of a job's completion, as a function of time; its parameters are called the job's type
//	profile     a template for the types of similar jobs; the estimator learns their distribution
//	contract    a completion time and a price that a quote offers and a job accepts
//	vector      a message of a market to all agents: for each class, the weight of each job
//	claim       a request of an agent for a task of a job, for a free slot; the agent drew the job by the weights
//	grant       the answer to a claim: an attempt to run. The bank's grants are credits that an operator issues
//	ahead       a task is granted to a node before it has a slot for the task; it does not run and costs nothing yet
//	exchange    a request of an agent to the leader: ended tasks, claims, and the renewal of the lease
//	lease       the time for which an agent may run tasks without a new answer of the leader
//	directive   a message of the leader to one agent between exchanges: stop, suspend, serve other markets
//	markets version  1, and 1 more each time the site's markets are applied
//
// Credits:
//
//	credit      the unit of account; amounts are integers of microcredits
//	account     the owner of credits: a user, a project, a peer or the site
//	project     an account that several users share, as owners, members or auditors
//	hold        credits of an account that are set aside for a purpose
//	deposit     a part of a job's hold, in addition to the budget; the site keeps it if the owner cancels the job late
//	tariff      the price that a job pays for a slot-second of a class, from a given time on
//	reserve     of a market, the least price of a slot-second; of the bank, the most that all peers may owe together
//	round       payments between jobs of a market that the bank makes together or not at all
//	settle      compute the debt of a job that has ended
//	charge      the bank moves a job's debt from its hold; refund: the rest of the hold is free again
//	effect      an action outside of the log that a committed command causes; repeated until it is confirmed
//
// Sites together:
//
//	remote job     a job of this site's user that a peer runs
//	visiting job   a job of a peer's user that this site runs; its owner is "alice@west"
//	errand         the next question about a remote job, and the site that gets it
//	authorisation  a signed statement of a bank that credits are set aside for one charge by one peer
//	instruction    a numbered request from one bank to another; both record its outcome in a book
//	credit limit   the most that a peer may owe this site
//	part           end the relation between two sites, by agreement or by one of them
//	standing       of a peer: open, suspended (its bank is silent), parting or parted
//	cycle          the period after which the banks of several sites net their debts; in a reservation
//	               market, the period whose slots are sold together
//
// Replicas:
//
//	actor       a part of the system that shares nothing and speaks by messages: auctioneer, bank, estimator, agent
//	replica     one of the processes that have the same copy of an actor's state
//	leader      the replica that answers requests and makes decisions
//	term        the time in which one replica leads
//	mailbox     a replicated actor's ordered log of commands (package mailbox)
//	command     a change of the state; each replica carries it out in the same way when it is committed
//	log         the list of the commands of a mailbox, in order
//	snapshot    a copy of the state after a command of the log, with which a replica starts; image: its bytes
//	machine     a state to which a mailbox applies commands
//	seal        the checksum of a log entry, which includes the one before it
//	book        the state of the auctioneer: jobs, nodes, effects
//	archive     the records of ended jobs that are no longer in the book, in files of each replica
//	desk        the auctioneer's leader as a pure state machine
//	shell       goroutines, clock and I/O around a pure core
//	ledger      the state of the bank: accounts, holds, transfers
//	journal     the ledger's history, one hash-chained record for each change
//	checkpoint  the site's signature of the hash of its journal up to a record
//	proof       a signature of a user or an actor; with it, replicas know who sent a request
package messages
