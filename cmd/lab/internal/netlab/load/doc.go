// Package load simulates users who submit jobs to a site at an even pace, whatever happens to the site. It records
// which submissions were acknowledged, and when.
//
// Requests do not wait for each other: a client sends one at every tick. So an outage affects all requests that are
// sent during the outage, not only the request that was on its way when the outage began. A request without an answer
// is sent again under its key, as bus.Call always does.
package load
