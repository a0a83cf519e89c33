// Package load is users who submit jobs to a site at an even pace, whatever
// becomes of the site, and who remember what was acknowledged, when, and what
// was not.
//
// Requests do not wait for one another: a client sends one at every tick, so that
// an outage is seen by all requests that fall into it and not by the one that
// happens to be under way. What is not answered is sent again under its key, as
// bus.Call does for everybody.
package load
