// Package cell keeps the processes of a task together and within limits: a
// control group with a thread of this process inside, which the task's first
// process is forked from. What is forked there begins inside, however it goes
// on; so a task costs no migration between control groups, which the kernel
// makes expensive, and there is no moment at which it is outside.
//
// # What a node has
//
// [Open] finds out, from best to least:
//
//   - version 2 of control groups, where the memory and pids controllers are there
//     and may be written: tasks are cloned into the group;
//   - version 1, controller by controller: what may be written is used;
//   - neither: tasks have their own session, and nothing else holds them.
//
// [Cells.Abilities] says which of them it is, in the words of package messages.
//
// # Reuse
//
// Cells are used by one task after the other: making and removing the groups of a
// task costs more than the task. A cell is given back only when nothing runs in
// it any more.
//
// Every process that a cell starts has no_new_privs set, unless the configuration
// says otherwise: the attribute is the thread's, and is inherited.
package cell
