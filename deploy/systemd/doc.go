// Package systemd holds the units that run Candor's processes as services, and
// checks them. They keep tasks running over a restart: the service's own process
// alone is ended (KillMode=process), the node's executor goes on, and the next
// process finds it.
package systemd
