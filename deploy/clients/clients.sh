#!/bin/bash
# clients.sh CANDOR: drives a site with programs of others, unmodified, through the commands
# of Slurm. It needs snakemake, toil-cwl-runner, cwltool and dask, and is run by an ordinary
# user: a site of root runs tasks as users of its own, who cannot write where these programs
# expect it. JOBS (1000) is how many jobs the largest workflow has. SOURCES can name a directory
# with the sources of submitit, dask-jobqueue and parsl, each in a directory of its name. Its directory
# newer has modules that are too old on the system (parsl: dill, typeguard and typing_extensions). ONLY is a
# pattern of the checks to make. Each job asks for 4 processors, and checks that nproc says 4.
set -u
candor=$(realpath "$1")
jobs=${JOBS:-1000}
home=$(mktemp -d -p "$HOME") # not below /tmp: tasks have a /tmp of their own
export HOME=$home USER=${USER:-$(id -un)} CANDOR_STATE=$home/state CANDOR_BUDGET=1 PATH=$home/slurm:/usr/bin:/bin LANG=C.UTF-8
passed=0 failed=0
trap 'kill "$site" 2>/dev/null; wait "$site" 2>/dev/null; rm -rf "$home"' EXIT

# The nodes are only declared, because the machine may have fewer processors.
cat >"$home/site.yaml" <<EOF
listen: 127.0.0.1:0
replicas: 1
operators: [operator]
accounts: [{name: $USER, grant: 1000000}]
markets: [{name: main, mechanism: proportional, classes: [cpu], units: [{class: cpu, unit: {cpus: 1, memory: 1G}}]}]
nodes:
  - {name: node1, slots: {cpu: 8}, resources: {cpus: 8, memory: 8G}, declared: true}
  - {name: node2, slots: {cpu: 8}, resources: {cpus: 8, memory: 8G}, declared: true}
EOF
"$candor" up --config "$home/site.yaml" >"$home/site.log" 2>&1 &
site=$!
for _ in $(seq 120); do grep -q '^site .* is up' "$home/site.log" && break; sleep 0.5; done
grep -q '^site .* is up' "$home/site.log" || { cat "$home/site.log"; exit 1; }
"$candor" slurm link "$home/slurm" >/dev/null

# check NAME EXPECTED COMMAND...: runs a command in a directory of its own, which must end
# with EXPECTED: ok or fails.
check() {
	local name=$1 want=$2 got=ok
	shift 2
	[[ $name == ${ONLY:-*} ]] || return
	mkdir -p "$home/$name" && cd "$home/$name" || exit 1
	"$@" >log 2>&1 || got=fails
	if [ "$got" = "$want" ]; then
		echo "passed: $name"
		passed=$((passed + 1))
	else
		echo "failed: $name: $got"
		tail -n 20 log
		failed=$((failed + 1))
	fi
}

# workflow N COMMAND: a Snakefile of N jobs that run a command, and a last job that counts how many of them had 4 processors.
workflow() {
	cat >Snakefile <<EOF
rule all:
    input: "sum.txt"
rule one:
    output: "out/{i}.txt"
    threads: 4
    shell: "$2"
rule total:
    input: expand("out/{i}.txt", i=range($1))
    output: "sum.txt"
    shell: "cat {input} | grep -cx 4.$threads > {output}"
EOF
}

# Snakemake gives a rule no more threads than the machine has processors.
threads=$(($(nproc) < 4 ? $(nproc) : 4))
good='echo $SLURM_CPUS_PER_TASK.$(nproc) > {output}'

snakemake_cluster() {
	workflow "$1" "$good"
	snakemake --cluster 'sbatch --parsable -c {threads} -o %j.log' --cluster-cancel scancel --jobs 50 --latency-wait 30 && [ "$(cat sum.txt)" = "$1" ]
}

snakemake_slurm() {
	workflow 2 "$good"
	snakemake --slurm --jobs 2 --latency-wait 30 --default-resources "slurm_account=$USER" slurm_partition=main && [ "$(cat sum.txt)" = 2 ]
}

# ends COMMAND [OPTION]: a workflow whose one job runs a command.
ends() {
	workflow 1 "$1"
	timeout 300 snakemake --slurm --jobs 1 --latency-wait 5 --default-resources "slurm_account=$USER" slurm_partition=main ${2:-}
}

# when_one_runs COMMAND...: runs a command with the number of a job once one runs.
when_one_runs() {
	(
		until id=$(squeue -h -o %i -t R | tail -n 1) && [ -n "$id" ]; do sleep 0.2; done
		"$@" "$id"
	) &
}

cancelled() {
	when_one_runs scancel
	ends 'sleep 600'
}

# tool COMMAND: a tool in CWL that runs a command.
tool() {
	cat >tool.cwl <<EOF
cwlVersion: v1.2
class: CommandLineTool
baseCommand: [sh, -c, '$1']
inputs: []
stdout: answer.txt
outputs:
  answer: {type: stdout}
EOF
}

# toil COMMAND: Toil runs a tool as a job.
toil() {
	tool "$1"
	timeout 300 toil-cwl-runner --batchSystem slurm --no-container --jobStore "$PWD/store" --workDir "$PWD" --coordinationDir "$PWD" --retryCount 0 --defaultMemory 100M --defaultCores 4 tool.cwl && [ "$(cat answer.txt)" = 42 ] &&
		[ "$(sacct -nXP -o AllocCPUS | tail -n 1)" = 4 ] # Toil gives a tool no variables of its job, so nproc cannot say 4
}

toil_late() { TOIL_SLURM_ARGS='-t 1' toil 'sleep 200'; }

toil_cancelled() {
	when_one_runs scancel
	toil 'sleep 200'
}

# cwl COMMAND [OPTION]: cwltool runs a tool within a job.
cwl() {
	tool "$1"
	sbatch --wait -c 4 ${2:-} --wrap '[ "$(nproc)" = 4 ] && cwltool --no-container tool.cwl' && [ "$(cat answer.txt)" = 42 ]
}

cwl_cancelled() {
	when_one_runs scancel
	cwl 'sleep 200'
}

# four is a Python expression: whether nproc says 4.
four="int(subprocess.check_output('nproc')) == 4"

# calls BODY [OPTION] [COMMAND]: 100 calls of a function through Dask: its scheduler runs here,
# its workers are jobs, and COMMAND is run once the calls have begun.
calls() {
	local code=0
	dask-scheduler --host 127.0.0.1 --port 0 --no-dashboard --scheduler-file s.json >scheduler.log 2>&1 &
	local scheduler=$!
	until [ -s s.json ]; do sleep 0.2; done
	sbatch --array=0-1 -c 4 -o worker-%a.log ${2:-} --wrap 'exec dask-worker --scheduler-file s.json --nthreads 4 --no-dashboard --no-nanny'
	DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 timeout 200 /usr/bin/python3 -c "
import os, subprocess, sys, time
from distributed import Client
client = Client(scheduler_file='s.json')
client.wait_for_workers(2, timeout=100)
def f(i):
    $1
calls = client.map(f, range(100))
if '${3:-}':
    subprocess.check_call('${3:-}', shell=True)
while client.ncores() and not all(c.done() for c in calls):
    time.sleep(0.2)
if not client.ncores():
    sys.exit('all workers are gone')
assert sum(client.gather(calls)) == 328350" || code=$?
	scancel -u "$USER"
	kill "$scheduler"
	wait "$scheduler"
	return "$code"
}

# submitit BODY [MINUTES] [cancel]: calls of a function by submitit: one, and an array.
submitit() {
	PYTHONPATH=$SOURCES/submitit timeout 300 /usr/bin/python3 -c "
import os, subprocess, time
import submitit
def f(x):
    $1
executor = submitit.AutoExecutor(folder='logs', cluster='slurm')
executor.update_parameters(timeout_min=${2:-5}, mem_gb=1, cpus_per_task=4, slurm_signal_delay_s=10)
one = executor.submit(f, 6)
if '${3:-}':
    while one.watcher.get_state(one.job_id, mode='force') != 'RUNNING':
        time.sleep(0.5)
    subprocess.check_call(['scancel', one.job_id])
assert one.result() == 42
many = executor.map_array(f, range(4))
assert [j.result() for j in many] == [0, 7, 14, 21]"
}

# jobqueue BODY: 100 calls of a function through dask-jobqueue.
jobqueue() {
	PYTHONPATH=$SOURCES/dask-jobqueue DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 timeout 200 /usr/bin/python3 -c "
import os, subprocess
from dask_jobqueue import SLURMCluster
from distributed import Client
def f(i):
    $1
with SLURMCluster(queue='main', cores=4, processes=1, memory='300MB', walltime='00:05:00', interface='lo', log_directory='logs', nanny=False) as cluster:
    cluster.scale(jobs=2)
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=100)
        assert sum(client.gather(client.map(f, range(100)))) == 328350"
}

# parsl BODY: ten calls of a function through Parsl. Parsl's one job asks for a whole node.
parsl() {
	local programs=$SOURCES/parsl/parsl/executors/high_throughput # pip would put these programs into PATH
	chmod +x "$programs"/*.py 2>/dev/null
	cat >calls.py <<EOF
import subprocess
def f(i):
    $1
EOF
	PATH=$PATH:$programs PYTHONPATH=$SOURCES/parsl:$SOURCES/newer:$PWD timeout 200 /usr/bin/python3 -c "
import parsl
import calls
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider
provider = SlurmProvider(partition='main', cores_per_node=4, walltime='00:05:00', launcher=SrunLauncher(), init_blocks=1, max_blocks=1)
executor = HighThroughputExecutor(label='slurm', address='127.0.0.1', max_workers_per_node=2, provider=provider,
    interchange_launch_cmd=['/usr/bin/python3', '-m', 'parsl.executors.high_throughput.interchange'])
f = parsl.python_app(calls.f)
parsl.load(Config(executors=[executor], retries=0, usage_tracking=0))
try:
    assert sum(call.result() for call in [f(i) for i in range(10)]) == 285
finally:
    parsl.dfk().cleanup()"
}

check snakemake-cluster ok snakemake_cluster 4
check snakemake-slurm ok snakemake_slurm
check snakemake-killed fails ends 'kill -9 $$'
check snakemake-late fails ends 'sleep 600' runtime=1
check snakemake-cancelled fails cancelled
check toil-cwl ok toil 'echo 42'
check toil-killed fails toil 'kill -9 $$'
check toil-late fails toil_late
check toil-cancelled fails toil_cancelled
check cwltool ok cwl 'echo 42'
check cwltool-killed fails cwl 'kill -9 $$'
check cwltool-late fails cwl 'sleep 200' -t1
check cwltool-cancelled fails cwl_cancelled
check dask ok calls "return i * i if $four else 0"
check dask-killed fails calls 'os.kill(os.getpid(), 9)'
check dask-late fails calls 'time.sleep(200)' -t1
check dask-cancelled fails calls 'time.sleep(200)' '' "scancel -u $USER"
if [ -d "${SOURCES:-}/submitit" ]; then
	check submitit ok submitit "return 7 * x if $four else 0"
	check submitit-killed fails submitit 'os.kill(os.getpid(), 9)'
	check submitit-late fails submitit 'time.sleep(200)' 1
	check submitit-cancelled fails submitit 'time.sleep(200)' 5 cancel
fi
if [ -d "${SOURCES:-}/dask-jobqueue" ]; then
	check jobqueue ok jobqueue "return i * i if $four else 0"
	check jobqueue-killed fails jobqueue 'os.kill(os.getpid(), 9)'
fi
if [ -d "${SOURCES:-}/parsl" ]; then
	check parsl ok parsl "return i * i if $four else 0"
fi
check "snakemake-$jobs-jobs" ok snakemake_cluster "$jobs"

"$candor" --account operator books >/dev/null || { echo "failed: the books do not balance"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
