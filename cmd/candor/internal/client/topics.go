package client

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "what the exit codes mean", Long: exitCodesTopic},
		{Use: "environment", Short: "which variables and files are read", Long: environmentTopic},
		{Use: "slurm", Short: "what becomes of #SBATCH lines", Long: slurmTopic()},
		{Use: "job-file", Short: "how to write a job file or script", Long: jobFileTopic},
	}
}

const exitCodesTopic = `Exit codes of candor:

    0  done
    1  failed, in a way that no other code names
    2  wrong usage, or a request that breaks a rule      Invalid, TooLarge
    3  what was named does not exist                     NotFound
    4  the account may not do this                       PermissionDenied
    5  the account cannot cover the amount               Insufficient
    6  no answer, or the outcome is not known: ask again Unavailable, NotLeader, Unknown
  130  interrupted

"candor submit --wait" exits as the job did: 0 if it completed, else the exit code
of the first task that failed for good (128 + the signal, if one ended it; 1 if the
task could not be started), 1 if its market discarded it, 130 if it was cancelled. "candor books" exits with 1 if
the books do not balance, "candor bank verify" if they do not verify. What runs until it is told to end, like
"candor up", exits with 0 when an interrupt (Ctrl-C) or SIGTERM has ended it, and with 1 if it could not end in
order; a second one ends it at once.

Errors go to standard error, as "candor COMMAND: what is wrong (Kind)".`

const environmentTopic = `Where candor connects to is decided by, the first that says something winning:

  flag         variable          file
  --server     CANDOR_SERVER     site.json in the state directory
  --site       CANDOR_SITE       site.json
  --account    CANDOR_ACCOUNT    the name of the --creds file, or site.json
  --creds      CANDOR_CREDS      creds/<account>.creds in the state directory
  --ca         CANDOR_CA         site.json
  --state      CANDOR_STATE      $XDG_STATE_HOME/candor, else ~/.local/state/candor

"candor up" writes these files. What only operators may do is done as the account
"operator", where that one's credentials are there and no account is named. NO_COLOR turns colours off, as does output to
anything but a terminal.

A task finds CANDOR_JOB, CANDOR_TASK, CANDOR_STAGE, its array index, the site and the
node in its own environment; variables of the user's environment are passed on only
if --env or --export name them.`

const jobFileTopic = `A job file is YAML (or JSON) with these fields; only budget and something to run
are needed:

  name: flights              # default: the file's name
  project: climate           # the account that pays; default: your own
  market: main               # default: the site's first
  site: east                 # a peer of your site that is to run it, or auto; default: your own
  budget: 25                 # credits; the most the job may cost
  dir: /data/flights         # default: the current directory; - for a fresh one
  env: {LC_ALL: C}
  labels: {run: 7, team: sky}  # to tell jobs and their cost apart; they change nothing
  comment: with the new data # for people
  notify: [ada@example.org, "failure:https://hooks.example.org/jobs"]  # on end, or on start, end or failure
  utility:                   # what a share of each class is worth; default: estimated
    form: linear             # or log
    weights: {map: 3, reduce: 2}
    minimum: 0.2             # below this utility the job owes nothing
  stages:
    - name: count
      class: map
      tasks: 16              # or array: 0-15
      script: |
        awk -F, '{ n[$3]++ } END { for (k in n) print k, n[k] }' part-$CANDOR_TASK.csv > count-$CANDOR_TASK
      time_limit: 10m        # of one attempt; a bare number is seconds
      attempts: 3            # how often a task may be tried
      max_running: 8         # at most so many at once
      on_failure: continue   # or stop: the other tasks, when one has failed for good
      memory: 2G             # of each task, where the node can bound it
      gang: false            # all tasks start together, or none; not in every market
      inputs: [data.csv, tools/count=count]  # sent along, as FILE or FILE=NAME
      outputs: ["out/*.csv"] # kept when a task has ended well, for candor fetch
    - name: total
      class: reduce
      after: [count]
      command: [sh, -c, "sort -m count-* > total"]
  after_jobs: [7]            # start when job 7 has ended
  after_ok: [8]              # and job 8 has completed
  hold: true                 # no tasks until candor release
  begin: now+1hour           # not before; or 16:00, tomorrow, 2026-01-31T12:00

Several tasks that no stage waits for are independent: one that fails fails alone, and
the job ends as failed when the others are over. Elsewhere, a task that fails ends the
job; on_failure says otherwise. A stage does not run after a stage of which a task failed.

What is bid depends on the market's mechanism; see candor markets:

  rate: 2                    # highest-bid: credits for a second on a slot
  value: 30                  # deadline, batch-queue, reservation: of completion
  delay: 0.01                # batch-queue: cost of a second of waiting
  length: 1h30m              # declared run time; of a task in contract markets
  deadline: +6h              # deadline, reservation: or 2026-01-31T12:00:00Z
  valuation:                 # contract: what completion is worth, by its time
    {class: sigmoidal, max: 20, mu: 3600, delta: 7200}
  contract: q7-3             # contract: what was chosen from candor quote

Inputs are files of yours, seen from the current directory; each task finds them, by
NAME or else the file's own name, in a fresh directory: such a job has no dir. Outputs are
patterns of files in that directory: * and ? stand for parts of a name but not for a /.
At the top level, both are meant for every stage. A file may have 64 MiB, the inputs of
a job and the outputs of a task 256 MiB together, an account's files 4 GiB; the site keeps
them for 14 days. candor fetch gets what the tasks left.

The environment, scripts and commands of all stages may have 768 KiB together, the whole
description 960 KiB; what is larger goes into files.

A job of one stage may have that stage's fields at the top level:

  budget: 1
  command: [hostname]

A script has the options of "candor submit" in comments before its first command:

  #!/bin/bash
  #CANDOR --budget 25 --class map
  #CANDOR --array 0-15 --time 10m
  #CANDOR --input data.csv --output 'part-*'
  grep ",$CANDOR_TASK," data.csv > "part-$CANDOR_TASK"

Directives of sbatch are read too: see candor help slurm.`

// slurmTopic is made of the table by which #SBATCH lines are read.
func slurmTopic() string {
	ours, ignored, without := jobfile.SbatchTable()
	return `The lines "#SBATCH option..." before the first command of a script are read. No option
that changes when, whether or on what a job runs is dropped: what Candor does not do, it
refuses, with what to say instead.

These are options of "candor submit":

` + ours + `
--dependency takes afterok:NUMBER and afterany:NUMBER. --ntasks is the number of tasks,
each a run of the script with its own $CANDOR_TASK.

These are ignored and reported, as nothing is lost:

` + ignored + `
These are taken with this value alone, which asks for nothing special:

` + without + `
All other options are refused. Lines of other systems (#PBS, #$, #BSUB) are not read: a
script that has no #SBATCH or #CANDOR line beside them is refused.`
}
