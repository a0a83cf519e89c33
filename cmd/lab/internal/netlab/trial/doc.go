// Package trial runs sites of a lab through the events that a site promises to survive. It measures them, and
// reports broken promises.
//
//	failover    each leader, and servers that lead nothing, are killed with
//	            kill -9, one after another, while users submit. Then every
//	            acknowledged job must exist, and the books are verified from
//	            their first record
//	isolation   the same with hosts that are disconnected from their network
//	links       each link between two of three hosts is cut for a minute, in
//	            each direction and in both, while users submit
//	upgrade     a newer build replaces an older one, host by host; then the
//	            older build returns, and the newer one again. Meanwhile users
//	            submit and long tasks run
//	federation  users of three sites, 60 ms apart, submit 500 jobs each, a third
//	            of them to the other sites; all books, statements and positions
//	            are compared
//	cut         one of three sites is cut off for two minutes under load, and
//	            catches up afterwards
//	liar        a peer without hosts attacks a site with the peer's credentials.
//	            Meanwhile the site's users and an honest peer must be served
//	quotes      users ask three sites for offers, at first while all answer,
//	            and then while one of them does not
//	chaos       faults drawn with a seed happen to three hosts. Meanwhile clients
//	            that keep a record (package witness) pay, submit, cancel and
//	            change markets
//	storms      the same faults, without the record, happen to two sites that are
//	            cut off from each other again and again; all their records are
//	            compared
//	restore     one replica of a bank is damaged while its site is cut off, and
//	            all books must agree. Then the site gets the state of an older
//	            backup, and both banks must name every lost instruction
//
// A trial ends with a [Report]: numbers, and the broken promises.
package trial
