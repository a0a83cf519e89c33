// Package runner turns tasks that a node was granted into processes.
//
// [Processes] runs real processes. Each task has its own session, a clean environment, a working directory, output
// files to which it writes directly, a time limit and a bound on its disk space. [Instant] ends every task at once, to
// measure the rest of the site.
//
// The packages below know nothing of Processes: machine discovers what a node has, program computes what the tasks of a
// stage share, launch starts one process, session finds and ends processes, room makes namespaces, lane keeps the files
// of running tasks, store keeps the files of jobs, and stream carries the input and output of interactive tasks.
//
// # What a task finds
//
// Its environment is a small base (PATH, HOME, USER, LOGNAME, SHELL, LANG, TMPDIR), then the variables of the job, and
// then the variables below. If two of them have the same name, the later one counts:
//
//	CANDOR_SITE         the site
//	CANDOR_NODE         the node it runs on
//	CANDOR_JOB          number of the job
//	CANDOR_JOB_NAME     name of the job
//	CANDOR_PAYER        account that pays for the job
//	CANDOR_MARKET       market of the job
//	CANDOR_STAGE        name of the stage
//	CANDOR_TASK         position of the task in the stage, from 0; in a rerun: its position in the first job
//	CANDOR_TASKS        number of tasks of the stage; in a rerun: the number in the first job
//	CANDOR_ATTEMPT      which attempt of the task this is, from 1
//	CANDOR_ARRAY_INDEX  array index of the task
//	CANDOR_TIME_LIMIT   the time limit of an attempt, in seconds; only if there is one
//	CANDOR_LEASE        the file that candor task alive reads (package lease)
//	CANDOR_STEP         the number of the step: only for ranks that srun has started
//	CANDOR_PROXY        the token for requests to the site (package proxy); not if tasks are private
//	CANDOR_COMMANDS     a directory with srun, sbatch and their like; only in rooms
//	PWD                 the working directory
//
// The job's umask, by default 022, applies to new files. No signal is ignored or blocked. A task may open 1,024 files
// and lock 8 MiB of memory; it can ask the kernel for more. Scheduling policy, priorities and other limits have the
// usual values. Standard input is /dev/null, unless the task is interactive: then its input and output are a stream or
// a terminal, and the node keeps no copy of them. The working directory is the directory that the job names, or else a
// new one for this task, which is removed at the end if it is empty. The runner has copied the stage's inputs there and
// checked their digests. The first line of a script names its interpreter; without such a line, /bin/sh runs the
// script.
//
// # How a task ends
//
// At its time limit, or when it is stopped, every process of its session gets SIGTERM, and SIGKILL when the grace is
// over. Before SIGTERM, a line about the time limit, or the line that Process.Say set, is added to the file to which
// the task's first process writes its errors; the runner waits at most three seconds until the line is added. When the
// first process of a task exits, the rest of the task is killed. Where the machine has control groups, this is
// everything in its cell (see package cell). Elsewhere it is the process group, and then, in a room or in an executor
// without rooms, the processes that left the session: they are found by the task's variables in their environment. A
// process that hides these variables ends with the last task of its room, or else of the executor. After a runner was
// killed, the next runner first ends the processes that were left.
//
// # Limits and suspension
//
// Memory, processes and processor time are bounded where the machine can do this. The attempt's Detail says what ran
// out. Disk space is bounded everywhere: package tree measures the files of a task while it runs and when it has ended.
// A suspended task is frozen with all its processes, or stopped by signals where there is no freezer. Suspended time
// does not count towards its time limit.
//
// # What a task cannot reach
//
// The threads that start tasks have given up some rights for ever, so that no task has them: capabilities in every set,
// new privileges, and the system calls of administrators. Config.User gives each account a user. Config.Apart gives the
// tasks of an account, or of a job where accounts share a user, a room: namespaces with their own processes, IPC,
// shared memory and temporary directories, in which Config.Hide is hidden. One process keeps the namespaces of a room
// open. Threads enter the room before they fork, so only the first task waits until the room is made. The root of a
// room is a copy of the mounts, and not the root of its mount namespace: the kernel then refuses all calls that make
// user namespaces. With Config.Namespaces it is the root of the mount namespace, and tasks can make user and mount
// namespaces. 32-bit programs do not run. [Config.Contain] chooses the best protection that the machine has.
//
// # What a task cannot delay
//
// A process of a task can hinder the node. It can stop another task of the same account during its start, hold a file
// lease on the program's file, or leave a connection unanswered. So the runner holds no lock while it starts a process,
// makes a connection or walks a directory. Each account has its own thread that starts tasks; a thread that hangs is
// replaced. A start that takes a minute is given up.
//
// # Files
//
// Under the state directory:
//
//	jobs/<account>/<job>/                           files of a job; the account may read its output
//	  silent                                        the attempts without any output, one on a line
//	  <stage>.script                                the script of a stage
//	  <stage>.<task>.<attempt>.out                  standard output, if there is any
//	  <stage>.<task>.<attempt>.err                  standard error, if there is any
//	  <stage>.<task>.<attempt>.dir                  files that are left in its own working directory
//	  lane<n>.{out,err,dir}                         files of running tasks, while they are empty
//	  lane<n>.alive                                 tells the running task when the lease ends
//	jobs/<account>/lane<n>.…                        the same, for all jobs of an account that has a
//	                                                user of its own, where there are control groups
//	jobs/.removed-*                                 directories to be removed
//
//	inputs/<digest>                           inputs, put there by the agent
//	running                                   the sessions of running tasks
//	rooms                                     temporary directories of rooms
//	users                                     which account has which user number
//
// Output beyond the limit is cut out of the middle of its file while the task runs: the file has a hole there, and
// readers are told how many bytes are missing.
//
// Config.KeptLimit bounds the files of the ended tasks of one account together. They are measured while tasks of the
// account run, because running tasks may write to these files. Above the limit the oldest files are removed first, but
// not while the agent must still store outputs of that task. If less than Config.KeepFree of the disk is free, the
// runner removes rooms that no task uses, and the oldest files of the account that keeps the most. If that is not
// enough, it kills the tasks that use the most space and removes their directories. It reads the free space as often as
// tasks could have used it up. If tasks fill the disk faster than they can be measured, all are suspended first, for at
// most a second.
//
// There is no other index than these names, so output stays readable after a restart of the agent. A lane is a place
// for one running task; tasks of the same job or account use it one after the other. The output of a running task has
// the name of its lane while it is empty; a check every Config.CheckEvery renames it. The task's own working directory
// has the lane's name until the task ends. Only the directories of the latest jobs are kept.
//
// # Cost
//
// A task costs its fork, exec and wait, and some twenty cheap system calls. No file is made or removed unless the task
// writes something. No goroutine is needed if its program and files are there already. Each room has one thread that
// starts its tasks. One goroutine polls the descriptors with which the kernel reports the ends of processes. Data that
// all tasks of a stage share are computed once.
package runner
