// Package systemd holds units that run Candor's processes as services, and checks them. Tasks keep running over a
// restart: only the service's own process is ended (KillMode=process). The node's executor continues, and the next
// process finds it.
//
// # Hardening
//
// Tasks are children of the service, so its settings bind them too. A setting is used if it takes away nothing that
// tasks need or that package runner allows them. Examples are settings that take away these rights: to gain privileges,
// to run 32-bit programs, to set the clock, to load kernel modules, and to change the host's name. /usr, /boot and /etc
// are read-only, except /etc/candor, where agents write their credentials. A job that installs software below /usr
// needs ReadWritePaths= in a drop-in. In /proc a task sees only the processes of its own account.
//
// "systemd-analyze security" also suggests these settings. They are left out for the given reasons:
//
//	User=, CapabilityBoundingSet=     agents start tasks as other users, in namespaces of their own
//	RestrictNamespaces=               the same; it would also refuse clone3, which starts tasks in control groups
//	ProtectControlGroups=, Delegate=  agents bound what tasks use by control groups
//	PrivateTmp=                       a restart would empty it, but tasks continue over a restart
//	PrivateDevices=, DeviceAllow=     tasks use graphics cards and network adapters
//	ProtectHome=, ProtectSystem=strict  tasks work in the homes and directories of their users
//	PrivateUsers=                     tasks run as users of the machine
//	PrivateNetwork=, IPAddressDeny=   the site is a network service, and tasks use the network
//	MemoryDenyWriteExecute=           compilers at run time: Java, Julia, JavaScript, PyTorch
//	RestrictSUIDSGID=                 projects share directories by the setgid bit
//	SystemCallFilter=~@debug          debuggers and profilers look into their own processes
//	SystemCallFilter=~@resources      tasks choose processors and memory nodes
//	SystemCallFilter=~@mount, ~@privileged  the agent itself needs the calls; tasks have no capabilities for them
//	ProcSubset=pid                    tasks read how much memory and how many processors there are
package systemd
