package client

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "what the exit codes mean", Long: exitCodesTopic},
		{Use: "environment", Short: "which variables and files are read", Long: environmentTopic},
		{Use: "job-file", Short: "how to write a job file or script", Long: jobFileTopic},
	}
}

const exitCodesTopic = `Exit codes of candor:

    0  done
    1  another failure
    2  wrong usage, or a request that breaks a rule   Invalid, TooLarge
    3  the named thing does not exist                 NotFound
    4  the account may not do this                    PermissionDenied
    5  the account cannot cover the amount            Insufficient
    6  no answer, or an unknown outcome: ask again    Unavailable, NotLeader,
                                                      Unknown
  130  interrupted

"candor submit --wait" exits with the code of the job: 0 if the job completed,
the exit code of the first task that failed for good, 1 if the market discarded
the job, 130 if the job was cancelled. The exit code of a task that a signal
ended is 128 + the signal. The exit code of a task that could not be started is
1. With several files (--each), the exit code is the code of the first file
whose job was refused or did not complete.

"candor peer reconcile --adopt" exits with 7 if the books agree after it.

"candor books" exits with 1 if the books do not balance, "candor bank verify" if
the books do not verify.

Programs that run until an interrupt (Ctrl-C) or SIGTERM, like "candor up", then
exit with 0, or with 1 if they could not end in order. A second interrupt ends
such a program at once.

Errors go to standard error, as "candor COMMAND: what is wrong (Kind)".`

const environmentTopic = `These settings decide where candor connects to. The flag wins over the variable,
and the variable over the file:

  flag         variable          file
  --server     CANDOR_SERVER     site.json in the state directory
  --site       CANDOR_SITE       site.json
  --site       CANDOR_JOB_SITE   site.json; for candor submit, run and quote
  --account    CANDOR_ACCOUNT    the name of the --creds file, or site.json
  --creds      CANDOR_CREDS      creds/<account>.creds in the state directory
  --ca         CANDOR_CA         site.json
  --state      CANDOR_STATE      $XDG_STATE_HOME/candor or ~/.local/state/candor

"candor up" writes these files. Where there is no such site, the file
/etc/candor/client.yaml (or CANDOR_CLIENT) names the site of all users:

  door: /run/candor/door.sock   # candor door gives each user credentials
  server: tls://hub:4222        # these three only without a door, or to
  site: west                    # replace what the door says
  ca: /etc/candor/ca.pem

The flag --state of candor jobs, tasks and
cancel chooses jobs or tasks: use CANDOR_STATE for the directory there. No
command acts as an operator by itself: name the account with --account operator,
or set CANDOR_ACCOUNT. NO_COLOR turns colours off. Output that goes to no
terminal has no colours.

The environment of a task has CANDOR_JOB, CANDOR_TASK, CANDOR_STAGE, the array
index, the site and the node. Variables of your own environment are there only
if --env or --export names them.`

const jobFileTopic = `A job file is YAML or JSON with these fields. Only a program is needed:

  name: flights              # default: the file's name
  project: climate           # the account that pays; default: your own
  market: main               # default: the site's first
  site: east                 # a peer that runs the job, or auto
  budget: 25                 # credits; the most that the job may cost
  dir: /data/flights         # default: the current directory; - for a new one
  env: {LC_ALL: C}
  labels: {run: 7, team: sky}  # to find jobs and their cost
  comment: with the new data # for people
  notify:                    # messages on end, or on start, failure or budget
    - ada@example.org
    - failure:https://hooks.example.org/jobs
  utility:                   # worth of a share of a class; default: estimated
    form: linear             # or log
    weights: {map: 3, reduce: 2}
    minimum: 0.2             # with less utility than this, the job waits
  stages:
    - name: count
      class: map
      tasks: 16              # or array: 0-15
      script: |
        cut -d, -f3 part-$CANDOR_TASK.csv | sort | uniq -c > count-$CANDOR_TASK
      time_limit: 10m        # of one attempt; a bare number is seconds
      attempts: 3            # at most so many attempts of a task
      max_running: 8         # at most so many tasks at once
      on_failure: continue   # what other tasks do after a failed task; or stop
      memory: 2G             # limit of each task, if the node can enforce it
      oom: fail              # a task fails if this limit ended one of its
                             # processes; default: ignore
      gang: false            # true: all tasks start together; in some markets
      inputs: [data.csv, tools/count=count]  # files to send: FILE or FILE=NAME
      outputs: ["out/*.csv"] # files to keep when a task has ended well
    - name: total
      class: reduce
      after: [count]
      command: [sh, -c, "sort -m count-* > total"]
  after_jobs: [7]            # start when job 7 has ended
  after_ok: [8]              # and job 8 has completed
  hold: true                 # no tasks until candor release
  begin: now+1hour           # not before; or 16:00, tomorrow, 2026-01-31T12:00

If a stage has several tasks and no other stage waits for it, the tasks are
independent: after a failed task the others go on, and then the job ends as
failed. In all other stages a failed task ends the job. The field on_failure
changes this. A stage never runs after a stage with a failed task.

Each market reads some fields of a bid, which candor markets shows:

  rate: 36/h                 # credits for an hour on a slot; 0.01 is a second
  value: 30                  # worth of completion
  delay: 0.01                # cost of a second of waiting
  length: 1h30m              # declared run time; with a valuation, of one task
  deadline: +6h              # or 2026-01-31T12:00:00Z
  valuation:                 # the worth of completion at each time
    {class: sigmoidal, max: 20, mu: 3600, delta: 7200}
  contract: q7-3             # an offer of candor quote

Inputs are your files, with paths from the current directory. Each task finds
them in a new directory, under NAME or the file's own name. So a job with inputs
has no dir. Outputs are patterns of files in that directory: * and ? stand for
parts of a name, but not for a /. Inputs and outputs at the top level are for
every stage.

A file may have 64 MiB. The inputs of a job, and the outputs of a task, may have
256 MiB together, and the files of an account 4 GiB. The site keeps files for 14
days. candor fetch gets the outputs.

The environment, scripts and commands of all stages may have 768 KiB together,
and the whole description 960 KiB. Put larger data into files.

A job with one stage may have the fields of the stage at the top level:

  budget: 1
  command: [hostname]

A script has the options of "candor submit" in comments before its first
command:

  #!/bin/bash
  #CANDOR --budget 25 --class map
  #CANDOR --array 0-15 --time 10m
  #CANDOR --input data.csv --output 'part-*'
  grep ",$CANDOR_TASK," data.csv > "part-$CANDOR_TASK"

Directives of sbatch are read too: see candor help slurm.`

// slurmTopic returns the help page about Slurm. A part comes from the table with which #SBATCH lines are read.
func slurmTopic() string {
	ours, ignored, without := jobfile.SbatchTable()
	return `"candor slurm link DIRECTORY" makes commands with the names of Slurm's: sbatch,
srun, salloc, sbcast, squeue, sacct, seff, sstat, scancel, scontrol, sinfo,
sacctmgr and sshare; sprio and sreport say what to use instead. Programs that
call these commands can then use Candor. A partition is a market, an account is
the project that pays, a cluster is a site. An element of an array has the
number of the job with its index, such as 33_4, and also a job number of its
own. salloc runs a command, or a shell, on the first node of a job. scontrol
update changes TimeLimit, JobName and ArrayTaskThrottle.

sbatch reads its options as candor submit reads #SBATCH lines, with these
differences: -o and -e name files for the output, as under Slurm (slurm-%j.out,
if there is neither); --wrap and --parsable work; the job gets the variables of
your environment, except variables that have the names of secrets; and a job
without a budget has the budget of CANDOR_BUDGET, or else the default budget of
its market, or what its slots cost for its time limit. Tasks have SLURM_JOB_ID,
SLURM_ARRAY_TASK_ID and the other variables of Slurm. scancel cancels a job.
With --signal, scancel sends a signal; only the signal KILL cancels.

A script with --ntasks, --nodes or --ntasks-per-node runs once. srun starts the
ranks, and so do mpirun of Open MPI and mpiexec of MPICH. Without --nodes the
ranks are on as few nodes as hold them. Steps that run at once divide what the
job has: with --exact a step takes the processors of its ranks, with --overlap
none, otherwise all. A step waits while other steps have these processors.

The lines "#SBATCH option..." before the first command of a script are read.
Candor ignores no option that changes whether, when or where a job runs, except
hints about the places of ranks within a node, and about nodes near one another.
An option that Candor does not have is refused, with the option to use instead.
--nice is ignored, because the bid decides here which job goes first.

The site's configuration says under "slurm" what names of partitions, accounts,
--qos, reservations and clusters mean. A name that is not listed there is the
name of a market, a project or this site; a --qos that is not listed has no
effect, and is reported. From a list of partitions the job takes the first one
that accepts the job and has a node with room for it now, or else the first one
that accepts the job. A script without a partition takes the first market with a
node that can hold the job.

These options are options of "candor submit":

` + ours + `--dependency accepts afterok, afternotok, afterany, after and aftercorr with
numbers of jobs, and singleton. In a list with "?" between the conditions, one
condition is enough. --gres and --gpus-per-node say how many GPUs the job has on
each node, as in gpu:a100:2, and --gpus how many on all nodes together. --mem=0
is all memory of a node. A job has all nodes of its --nodelist.

These options are ignored and reported, because no job needs them:

` + ignored + `
These options are accepted with this value only, which asks for nothing special:

` + without + `All other options are refused. Lines of PBS (#PBS) and of Grid Engine (#$) are
read where a script has no #SBATCH and #CANDOR lines. Each of their options is
also used, ignored because no job needs it, or refused. A script with lines of
LSF (#BSUB) alone is refused.`
}
