// Package cell keeps the processes of a task together and within limits: in a
// control group in which the task's first process begins, however it goes on. It
// is cloned there, or where that cannot be, forked from a thread of this process
// that is inside. So a task costs no migration between control groups, which the
// kernel makes expensive, and there is no moment at which it is outside.
//
// # What a node has
//
// [Open] finds out, from best to least:
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
// [Cells.Abilities] says which of them it is, in the words of package messages.
//
// # Processors and devices
//
// Where [Open] is told so, a cell has the processors and the devices that [Limits] say: version 1 holds tasks to both,
// version 2 to processors, where the controller is delegated. Without the controllers nothing does.
//
// # Accounts
//
// An [Account] is a group above the cells of one account, for memory and processes. What is charged to a cell and
// outlives its task stays charged there. A thread that starts tasks without limits is itself in the account's group of version
// 1, and its tasks with it, at no cost for each. Its bound grows with how many tasks the account had at once.
//
// # Reuse
//
// Cells are used by one task after the other: making and removing the groups of a
// task costs more than the task. Only a cell whose task ended by itself is used
// again, when nothing runs in it any more. A cell is retired, and removed, once
// something in it was killed or suspended, or could not be started: recent kernels
// kill whatever is cloned into a group of version 2 that was ever killed, a task
// that ends while it is suspended leaves its group frozen, and a group that
// somebody removed takes nobody. For the same reason [Open] tries groups of
// version 2 before it relies on them: while this process is itself in a group that
// was killed, nothing that it clones into another one survives.
package cell
