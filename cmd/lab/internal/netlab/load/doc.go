// Package load simulates users who submit jobs to a site at an even pace, whatever happens to the site. It records
// which submissions were acknowledged, and when.
//
// A client sends a request at every tick, and does not wait for earlier ones. So an outage affects all requests during
// the outage. A request without an answer is sent again under its key.
package load
