// Package cell keeps the processes of a task together and within limits: in a control group. The task's first process
// begins in that group: it is cloned into the group or, where that is impossible, forked by a thread that is in the
// group. So a task needs no move between control groups, which is slow in the kernel.
//
// # What a node has
//
// [Open] finds out what the machine offers. From best to worst:
//
//   - version 2 of control groups, if this process may write the memory and pids
//     controllers: tasks are cloned into the group /candor, next to the groups of
//     services and sessions;
//   - version 2 without controllers, below the group of the service or session: tasks
//     are held together, suspended and ended, and nothing bounds them;
//   - version 1: tasks with limits use each controller that this process may write.
//     Tasks without limits, which are most, use the groups of version 2 that such a
//     machine also has, without controllers. These groups hold processes together,
//     suspend and end them, and need no further thread;
//   - neither: a task has a session of its own, and nothing else holds its processes.
//
// [Cells.Abilities] returns the result as abilities of package messages.
//
// # Processors and devices
//
// If [Open] is asked to, a cell has only the processors and devices of its [Limits]. Version 1 enforces both. Version 2
// enforces processors, if the controller is delegated to this process, and devices by an eBPF program in the cell's
// group, if this process may load one. Otherwise nothing is enforced.
//
// # Accounts
//
// An [Account] is a group above the cells of one account, for memory and processes. Memory that was charged to a cell
// and outlives its task stays charged to the account. A thread that starts tasks without limits is itself in the
// account's group of version 1, and its tasks inherit the group. The limit of that group grows with the largest number
// of tasks that the account had at once.
//
// # Reuse
//
// One task after the other uses a cell, because making and removing groups costs more than a short task. A cell is used
// again only if its task ended by itself and nothing runs in it any more. Otherwise it is retired, and later removed. A
// cell is retired in the other cases for three reasons. If a group of version 2 was once killed, recent kernels kill
// each process that is cloned into it later. A task that ends while it is suspended leaves its group frozen. A group
// that somebody removed accepts no process. [Open] tests groups of version 2 before it relies on them: this process may
// itself be in a group that was killed.
package cell
