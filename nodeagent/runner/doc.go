// Package runner turns tasks that a node was granted into processes.
//
// [Processes] runs real ones: each in a session of its own, with a clean
// environment, a working directory, its output straight in files, a time limit
// and a bound on what it may write; [Instant] ends every task at once, to
// measure the rest of the site.
//
// # What a task finds
//
// Its environment is a small base (PATH, HOME, USER, LOGNAME, SHELL, LANG,
// TMPDIR), over it the variables of the job, and over those:
//
//	CANDOR_SITE         the site
//	CANDOR_NODE         the node it runs on
//	CANDOR_JOB          number of the job
//	CANDOR_JOB_NAME     name of the job
//	CANDOR_PAYER        account that pays for the job
//	CANDOR_MARKET       market of the job
//	CANDOR_STAGE        name of the stage
//	CANDOR_TASK         position of the task in the stage, from 0; of a rerun: in the first job
//	CANDOR_TASKS        number of tasks of the stage; of a rerun: of the first job's
//	CANDOR_ATTEMPT      which attempt of the task this is, from 1
//	CANDOR_ARRAY_INDEX  array index of the task
//	CANDOR_LEASE        what candor task alive asks (package lease)
//	CANDOR_PROXY        the token by which commands in the task ask the site (package proxy); not where tasks are private
//	PWD                 the working directory
//
// Files are made without the permissions of the job's umask, by default 022.
// No signal is ignored or blocked, 1,024 files may be open and 8 MiB of memory locked unless the task asks the
// kernel for more, and scheduling policy, priorities and other limits are the usual ones, whoever started the node.
// The processors are the node's.
// Standard input is /dev/null, unless the task is interactive: then its input and output
// are a stream or a terminal, and nothing of them is kept. The working directory is the job's, or a fresh
// one of the task's own, which is removed at the end if it is empty. The stage's
// inputs have been copied there, and compared with their digests. A script
// is run by the interpreter that its first line names, without one by /bin/sh.
//
// # How a task ends
//
// At its time limit, or when it is stopped, every process of its session gets
// SIGTERM, and SIGKILL when the grace is over. When the first process of a
// task exits, what is left of the task is killed: all of its cell, where the
// machine has control groups (see package cell), else its process group, and then, in
// its room or in an executor without rooms, what had left its session: by the task's
// variables in its environment. A process that hides these ends when the last task of the
// room, or else of the executor, has ended. What a runner that was killed left running,
// the next one ends before it begins.
//
// # Limits and suspension
//
// Memory, processes and processor time are bounded where the machine can; what
// ran out is said in the attempt's Detail. What a task keeps on the disk is bounded
// everywhere: package tree measures it while the task runs and when it has ended. A suspended
// task is frozen with all its processes, or stopped by signals where there is no freezer; its
// time limit does not run meanwhile.
//
// # What a task cannot reach
//
// The threads that start tasks have given up, for good, what no task is to have:
// capabilities in every set, new privileges, and the system calls of administrators.
// Config.User gives each account a user. Config.Apart gives the tasks of an account, or
// of a job where accounts share a user, a room: namespaces with their own processes,
// IPC, shared memory and temporary directories, in which Config.Hide is hidden. A process
// holds a room; threads go in before they fork, so that only the first task waits for it.
// The root of a room is a copy of the mounts, not the root of its mount namespace: the
// kernel gives nobody user namespaces there, whichever call asks for one. With Config.Namespaces it is the root, and
// tasks make user and mount namespaces of their own.
// Programs of 32 bits do not run. [Config.Contain] takes the best that a machine has.
//
// # What a task cannot delay
//
// A process of a task can stop another task that the node is starting for the same account, once that task has the
// account's user, hold a lease on the program's file, or leave a connection unanswered. So no lock is held
// while a process is started, a connection is made or a directory is walked, and the thread that starts tasks is the
// account's own; where it does not get on, another takes its place. A start that takes a minute is given up.
//
// # Files
//
// Under the state directory:
//
//	jobs/<account>/<job>/                           of a job; the account may read its output
//	  silent                                        the attempts without any output, one on a line
//	  <stage>.script                                the script of a stage
//	  <stage>.<task>.<attempt>.out                  standard output, if there is any
//	  <stage>.<task>.<attempt>.err                  standard error, if there is any
//	  <stage>.<task>.<attempt>.dir                  what is left in its own working directory
//	  lane<n>.{out,err,dir}                         of running tasks, while they are empty
//	  lane<n>.alive                                 what the task that runs is told of the lease
//	jobs/<account>/lane<n>.…                        the same, for all jobs of an account that has a
//	                                                user of its own, where there are control groups
//	jobs/.removed-*                                 what is to be removed
//
//	inputs/<digest>                           inputs, put there by the agent
//	running                                   the sessions of running tasks
//	rooms                                     temporary directories of rooms
//	users                                     which account has which user number
//
// Output beyond the limit is cut out of the middle of its file while the task runs: the
// file has a hole there, which readers are told of as missing bytes.
//
// What the ended tasks of an account left is measured while tasks of the account run, since they may write there, and
// bounded by Config.KeptLimit together: the oldest goes first, but nothing whose outputs the agent has still to store.
// Where less than Config.KeepFree of the disk is free, rooms go that no task uses, and the account that keeps the most
// loses its oldest; where that is not enough, the tasks that keep the most are killed, and their directories removed. The free
// space is looked at as often as it may have been used up. If tasks fill the disk faster than they can be measured, all are
// suspended first, for a second at most.
//
// The names are the whole index: output stays readable after a restart of the
// agent. While a task runs, its output has the name of its lane, which a task
// of the same job or account had before, until something is found in it, within
// Config.CheckEvery; its own working directory has that name until the end.
// Only the directories of the latest jobs are kept.
//
// # Cost
//
// A task costs its fork, exec and wait, some twenty cheap system calls that
// make no file and remove none unless it writes something, and no goroutine where its program
// and files are there already. Each room has one thread that starts its tasks; it waits in the kernel,
// and nobody waits for it. The kernel signals ends through file descriptors of processes, which one goroutine
// polls together. What is the same for all tasks of a stage is worked out once.
package runner
