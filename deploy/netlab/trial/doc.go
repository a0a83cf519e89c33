// Package trial puts the sites of a lab through what a site promises to survive,
// measures it, and says what was broken.
//
//	failover    each leader, and servers that lead nothing, are killed with kill -9,
//	            one after another, while users submit; then every acknowledged job is
//	            asked for, and the books are carried out again from their first record
//	upgrade     a newer build replaces an older one, host by host, while users submit
//	            and long tasks run
//
// A trial ends in a [Report]: numbers, and the promises that were broken.
package trial
