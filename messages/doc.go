// Package messages is the vocabulary that Candor's actors share: quantities,
// identifiers, the description of a job, the requests and replies of every
// actor, the subjects they travel on, and the kinds of error. Actors import
// this package and never one another.
//
// # Wire
//
// A payload is one value, in msgpack with structs as arrays, or in JSON with
// the same field names as the json tags here; see [Marshal], [Unmarshal] and
// [Format]. A payload whose first byte is '{', or whose Content-Type header
// says application/json, is JSON, and is answered in JSON. Fields are only
// ever added at the end of a struct: an array that is shorter than the struct
// leaves the missing fields zero, one that is longer is refused. For the same
// reason an embedded struct is one element, an array of its own; in JSON its
// fields stand among the others. Enumerations are numbers in msgpack and names
// in JSON; [Credits], [Time] and [Duration] are integers of microcredits,
// microseconds and nanoseconds in msgpack.
//
// # Identity
//
// The account on whose behalf a request is made is the last token of its
// subject, bound to the connection by NATS permissions; no field of a payload
// is ever trusted to say who speaks.
//
// # Words
//
// Each concept of the system has one word, in the code, in what users read and in
// the documentation.
//
// Work:
//
//	job         what a user submits, bids for and pays: stages of tasks. Its number is a [JobID]
//	stage       a part of a job whose tasks are alike; it may wait for other stages (an array job of Slurm)
//	task        one program of a stage, run by one process on one slot
//	attempt     one run of a task, numbered from 1; of a task only the latest attempt counts
//	gang        a stage whose tasks all start together, or not at all
//	array       the indexes that the tasks of a stage are given
//	limit       a bound on what a task may use (time, memory), or an account may do (pending jobs, spending)
//	suspend     a task leaves its slot and is frozen on its node; resume: it gets a slot there again and goes on
//	requeue     a task is ended, and run again from its beginning by the next attempt
//	discard     a mechanism ends a job that it will not complete
//
// Machines:
//
//	site        one cluster with its own auctioneer, bank and users; the sites that are peers form a federation
//	peer        another site with which this one exchanges jobs and credits
//	node        a machine that runs tasks; its agent speaks for it
//	class       a kind of slot (cpu, gpu); markets allocate classes
//	slot        a place for one running task on a node
//	session     the time from an agent's registration to its next one; a later session fences the earlier ones
//	cell        the control group in which the processes of one task are confined
//	drain       a node takes no new work, and finishes what it has
//	eviction    the leader ends what still runs on a node whose time to drain is over
//	probe       a task of the site's own that does nothing, granted to learn whether a node works
//	quarantine  a node that fails what others run well gets no work, until a probe ends well
//
// Allocation:
//
//	market      a set of slots that one mechanism allocates (a partition of Slurm, with prices)
//	mechanism   the rule of a market: who gets slots, and what they cost
//	bid         what a job declares: budget, utility or valuation, deadline, length, width
//	budget      the most that a job may cost
//	utility     what a job says each class is worth to it, as weights
//	valuation   what a job's completion is worth, as a function of time; its parameters are the job's type
//	profile     a template of the types of one sort of job, from which the estimator learns a distribution
//	contract    a completion time and a price from the menu of a quote, agreed for a job
//	vector      what a market publishes to agents: for each class, the weight of each job
//	claim       an agent asks for a task on a free slot, of a job that it drew by the weights
//	grant       the answer to a claim: an attempt to run. The bank's grants are credits that an operator issues
//	ahead       granted to a node before it has a slot for it: at hand there, and neither running nor paid for
//	exchange    the one request of an agent to the leader: what has ended, what it claims, and the lease's renewal
//	lease       how long an agent may run tasks without an answer to an exchange
//	directive   a word of the leader to one agent between exchanges: stop, suspend, serve other markets
//	markets version  1, and 1 more each time the site's markets are applied
//
// Credits:
//
//	credit      the unit of account; amounts are integers of microcredits
//	account     whose credits they are: of a user, a project, a peer or the site
//	project     an account in which others have a part, as owners, members or auditors
//	hold        credits of an account that are set aside; never a task that is suspended
//	deposit     a part of a job's hold in addition to its budget, kept if its owner cancels it late
//	tariff      what a slot-second of a class costs a job from a moment on
//	reserve     the least price of a slot-second; of the bank, the most that all peers together may owe by settlements
//	round       payments between jobs of a market that the bank makes together or not at all
//	settle      work out what a job that has ended owes
//	charge      the bank moves what a job owes from its hold; refund: the rest is free again
//	effect      what must happen outside because of a commit; repeated until it is confirmed
//
// Sites together:
//
//	remote job     a job of this site's user that a peer runs
//	visiting job   a job of a peer's user that this site runs; its owner is "alice@west"
//	errand         what is to be asked next about a remote job, and of whom
//	authorisation  a signed word of a bank that credits are set aside for one charge by one peer
//	instruction    what one bank asks of another, under a number; both enter its outcome into a book
//	credit limit   the most that a peer may owe this site
//	part           end what is between two sites, by agreement or alone
//	standing       of a peer: open, suspended (its bank is silent), parting or parted
//	cycle          the period after which the banks of several sites net what they owe one another; of a
//	               reservation market, the period that is sold at once
//
// Replicas:
//
//	actor       a part of the system that shares nothing and speaks by messages: auctioneer, bank, estimator, agent
//	replica     one of the processes that keep an actor's state alike
//	leader      the replica that answers and decides
//	term        the time in which one replica leads
//	mailbox     a replicated actor's ordered log of commands (package mailbox)
//	command     a change of the state, carried out alike by each replica when it is committed
//	log         the commands of a mailbox, in order
//	snapshot    the state after a command of the log, from which a replica starts; image: its bytes
//	machine     a state to which a mailbox applies commands
//	seal        the checksum of a log entry, which includes the one before it
//	book        the state of the auctioneer: jobs, nodes, effects
//	archive     the records of ended jobs that have left the book, in files of each replica
//	desk        the auctioneer's leader as a pure state machine
//	shell       goroutines, clock and I/O around a pure core
//	ledger      the state of the bank: accounts, holds, transfers
//	journal     the ledger's history, one hash-chained record for each change
//	checkpoint  the site's signature under the hash of its journal at a record
//	proof       the signature of a user or an actor by which replicas know who asked
package messages
