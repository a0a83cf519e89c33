// Package load is users who submit jobs to a site at an even pace, whatever happens to the site.
// They remember what was acknowledged, when, and what was not.
//
// Requests do not wait for one another: a client sends one at every tick. So all requests during an
// outage see it, not only the one that was under way when it began. A request without an answer is
// sent again under its key, as bus.Call always does.
package load
