// Package trial puts the sites of a lab through what a site promises to survive,
// measures it, and says what was broken.
//
//	failover    each leader, and servers that lead nothing, are killed with kill -9,
//	            one after another, while users submit; then every acknowledged job is
//	            asked for, and the books are carried out again from their first record
//	isolation   the same with hosts that are taken off their network instead
//	links       each link between two of three hosts is cut for a minute, each way and both
//	            ways, while users submit
//	upgrade     a newer build replaces an older one, host by host, while users submit
//	            and long tasks run
//	federation  users of three sites, 60 ms apart, submit 500 jobs each, a third of it
//	            to the other sites; all books, statements and positions are compared
//	cut         one of three sites is off the others for two minutes under load, and
//	            catches up afterwards
//	liar        a peer that has no hosts attacks a site with its own credentials, while the
//	            site's users and an honest peer want to be served
//	quotes      offers of three sites, and of three sites while one of them does not answer
//	chaos       faults drawn by a seed befall three hosts, while clients with a record of
//	            their own (package witness) pay, submit, cancel and change markets
//	storms      the same faults, without that record, befall two sites that lose sight of one
//	            another meanwhile; all that they wrote down is compared
//	restore     one of two sites is damaged at one replica of its bank while it is cut off,
//	            and all books agree; then it gets the state of an older backup, and both
//	            banks name every instruction that it lost
//
// A trial ends in a [Report]: numbers, and the promises that were broken.
package trial
