#!/bin/bash
# clients.sh CANDOR: drives a site with programs of others, unmodified, through the commands
# of Slurm. It needs snakemake and toil-cwl-runner, and is run by an ordinary user: a site of
# root runs tasks as users of its own, who cannot write where these programs expect it.
# JOBS (1000) is how many jobs the largest workflow has.
set -u
candor=$(realpath "$1")
jobs=${JOBS:-1000}
home=$(mktemp -d -p "$HOME") # not below /tmp: tasks have a /tmp of their own
export HOME=$home USER=${USER:-$(id -un)} CANDOR_STATE=$home/state CANDOR_BUDGET=1 PATH=$home/slurm:/usr/bin:/bin LANG=C.UTF-8
passed=0 failed=0
trap 'kill "$site" 2>/dev/null; wait "$site" 2>/dev/null; rm -rf "$home"' EXIT

"$candor" up --listen 127.0.0.1:0 --replicas 1 --nodes 1 >"$home/site.log" 2>&1 &
site=$!
for _ in $(seq 120); do grep -q '^site .* is up' "$home/site.log" && break; sleep 0.5; done
grep -q '^site .* is up' "$home/site.log" || { cat "$home/site.log"; exit 1; }
"$candor" slurm link "$home/slurm" >/dev/null

# check NAME EXPECTED COMMAND...: runs a command in a directory of its own, which must end
# with EXPECTED: ok or fails.
check() {
	local name=$1 want=$2 got=ok
	shift 2
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

# workflow N COMMAND: a Snakefile of N rules that run a command, and one that adds them up.
workflow() {
	cat >Snakefile <<EOF
rule all:
    input: "sum.txt"
rule one:
    output: "out/{i}.txt"
    shell: "$2"
rule total:
    input: expand("out/{i}.txt", i=range($1))
    output: "sum.txt"
    shell: "cat {input} | wc -l > {output}"
EOF
}

good='echo {wildcards.i} > {output}'

snakemake_cluster() {
	workflow "$1" "$good"
	snakemake --cluster 'sbatch --parsable -o %j.log' --cluster-cancel scancel --jobs 50 --latency-wait 30 && [ "$(cat sum.txt)" = "$1" ]
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

cancelled() {
	(
		until id=$(squeue -h -o %i -t R | tail -n 1) && [ -n "$id" ]; do sleep 0.2; done
		scancel "$id"
	) &
	ends 'sleep 600'
}

toil() {
	cat >tool.cwl <<'EOF'
cwlVersion: v1.2
class: CommandLineTool
baseCommand: [sh, -c, 'echo $((6*7))']
inputs: []
stdout: answer.txt
outputs:
  answer: {type: stdout}
EOF
	toil-cwl-runner --batchSystem slurm --no-container --jobStore "$PWD/store" --workDir "$PWD" --coordinationDir "$PWD" --defaultMemory 100M --defaultCores 1 tool.cwl && [ "$(cat answer.txt)" = 42 ]
}

check snakemake-cluster ok snakemake_cluster 4
check snakemake-slurm ok snakemake_slurm
check snakemake-killed fails ends 'kill -9 $$'
check snakemake-late fails ends 'sleep 600' runtime=1
check snakemake-cancelled fails cancelled
check toil-cwl ok toil
check "snakemake-$jobs-jobs" ok snakemake_cluster "$jobs"

"$candor" --account operator books >/dev/null || { echo "failed: the books do not balance"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
