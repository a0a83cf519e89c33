#!/bin/bash
# The same work through Candor, Slurm, Grid Engine and Dask on this machine, one after the
# other: see README.md. Needs root, for the other systems start their services as root.
set -u
candor=$(realpath "${CANDOR:-bin/candor}") lab=$(realpath "${LAB:-bin/lab}")
client=${CLIENT:-$(dirname "$candor")/client/candor}
[ -x "$client" ] && client=$(realpath "$client") || client=$candor
slots=${SLOTS:-8} array=${ARRAY:-2000} submissions=${SUBMISSIONS:-50} rounds=${ROUNDS:-10}
here=$(realpath "$(dirname "$0")") python=/usr/bin/python3
[ "$(id -u)" = 0 ] || { echo "peers: run this as root: the services of the other systems start as root" >&2; exit 1; }
dir=$(mktemp -d /var/tmp/peers-XXXXXX) && chmod 755 "$dir"
mkdir "$dir/work" && cd "$dir/work" || exit 1
pids=()
finish() {
	[ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
	stop_gridengine
	wait 2>/dev/null
	rm -rf "$dir"
}
stop_gridengine() {
	[ -f "$dir/gridengine" ] || return
	qconf -ke all >/dev/null 2>&1
	qconf -km >/dev/null 2>&1 || kill "$(cat /var/spool/gridengine/qmaster/qmaster.pid 2>/dev/null)" 2>/dev/null
	rm -f "$dir/gridengine"
}
trap finish EXIT

install() { # packages
	dpkg -s "$@" >/dev/null 2>&1 || DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$dir/apt.log" 2>&1
}
now() { date +%s.%N; }
until_ok() { # seconds command...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -ge "$end" ] && return 1
		sleep 0.2
	done
}
result() { echo "$1 $2 $3" >>results; } # system measure value
started() { # system command...: seconds of one start, the median
	local system=$1 i from
	shift
	for i in $(seq "$rounds"); do
		from=$(now)
		"$@" >/dev/null 2>&1 || return 1
		echo "$(now) $from" | awk '{print $1 - $2}'
	done | sort -n | awk -v s="$system" '{a[NR] = $1} END {if (NR) print s, "start", a[int((NR + 1) / 2)]}' >>results
}
rate() { # system measure number command...
	local system=$1 measure=$2 n=$3 from
	shift 3
	from=$(now)
	"$@" >/dev/null 2>"$dir/said" || { echo "peers: $system: $measure: $(tail -n 1 "$dir/said")" >&2; return 1; }
	result "$system" "$measure" "$(echo "$(now) $from $n" | awk '{print $3 / ($1 - $2)}')"
}
one_after_another() { # command...
	local i
	for i in $(seq "$submissions"); do "$@" || return 1; done
}

printf '#!/bin/sh\nexec /bin/true\n' >true.sh
chmod 755 true.sh

user_of_door() { HOME=$dir CANDOR_STATE='' CANDOR_CLIENT=client.yaml "$client" "$@"; }

with_candor() {
	export CANDOR_STATE=$dir/candor CANDOR_BUDGET=0.001
	cat >site.yaml <<-END
		listen: 127.0.0.1:${PORT:-6817}
		markets: [{name: main, mechanism: proportional, classes: [cpu]}]
		accounts: [{name: root, grant: 1000}]
		default_account: root
		nodes: [{name: node1, slots: {cpu: $slots}}]
	END
	"$candor" up --config site.yaml --state "$CANDOR_STATE" >candor.log 2>&1 &
	local site=$!
	pids+=($site)
	until_ok 60 "$client" submit --wait -- /bin/true || { tail -n 5 candor.log >&2; return 1; }
	started candor "$client" submit --wait -- /bin/true
	rate candor array "$array" "$client" submit -n "$array" --wait -- /bin/true
	"$candor" user add --door login --config site.yaml --state "$CANDOR_STATE" >/dev/null 2>&1
	"$client" door --least-user 0 --creds "$CANDOR_STATE/creds/doors/login.creds" --site west --server "nats://127.0.0.1:${PORT:-6817}" --socket "$dir/door/sock" >door.log 2>&1 &
	local door=$!
	pids+=($door)
	echo "door: $dir/door/sock" >client.yaml
	until_ok 20 user_of_door jobs
	rate candor submit "$submissions" one_after_another user_of_door submit true.sh
	kill "$door" "$site"
	wait "$door" "$site"
	result candor noop "$("$lab" bench dispatch --tasks 50000 --json | $python -c 'import json, sys; print(json.load(sys.stdin)["tasks_per_second"])')"
}

with_slurm() {
	install slurm-wlm || return 1
	mkdir -p "$dir/slurm/state" "$dir/slurm/spool"
	local name
	name=$(hostname -s)
	cat >"$dir/slurm/slurm.conf" <<-END
		ClusterName=peers
		SlurmctldHost=$name(127.0.0.1)
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/none
		CredType=cred/none
		SlurmctldPort=16817
		SlurmdPort=16818
		StateSaveLocation=$dir/slurm/state
		SlurmdSpoolDir=$dir/slurm/spool
		SlurmctldPidFile=$dir/slurm/ctld.pid
		SlurmdPidFile=$dir/slurm/d.pid
		SlurmctldLogFile=$dir/slurm/ctld.log
		SlurmdLogFile=$dir/slurm/d.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SlurmdParameters=config_overrides
		SchedulerParameters=sched_min_interval=0,sched_interval=1,batch_sched_delay=0,default_queue_depth=1000
		MaxArraySize=100001
		MaxJobCount=200000
		MpiDefault=none
		ReturnToService=2
		NodeName=$name NodeAddr=127.0.0.1 CPUs=$slots
		PartitionName=main Nodes=$name Default=YES State=UP
	END
	export SLURM_CONF=$dir/slurm/slurm.conf
	slurmctld -D >/dev/null 2>&1 &
	pids+=($!)
	slurmd -D >/dev/null 2>&1 &
	pids+=($!)
	until_ok 60 timeout 10 srun /bin/true || { tail -n 3 "$dir"/slurm/*.log >&2; return 1; }
	started slurm srun /bin/true
	rate slurm array "${SLURM_ARRAY:-200}" sbatch --wait -o /dev/null -a "0-$((${SLURM_ARRAY:-200} - 1))" true.sh
	rate slurm submit "$submissions" one_after_another sbatch -o /dev/null true.sh
}

with_gridengine() {
	install gridengine-master gridengine-exec gridengine-client || return 1
	export SGE_ROOT=/var/lib/gridengine SGE_CELL=default
	local name=localhost
	touch "$dir/gridengine"
	echo "$name" >/var/lib/gridengine/default/common/act_qmaster
	echo "$name $(hostname)" >/var/lib/gridengine/default/common/host_aliases # both are 127.0.0.1
	sge_qmaster >gridengine.log 2>&1
	until_ok 20 qconf -ss || until_ok 1 qconf -sh || { tail -n 3 /var/spool/gridengine/qmaster/messages >&2; return 1; }
	qconf -as "$name" >/dev/null 2>&1
	qconf -Ae <(printf 'hostname %s\nload_scaling NONE\ncomplex_values NONE\nuser_lists NONE\nxuser_lists NONE\nprojects NONE\nxprojects NONE\nusage_scaling NONE\nreport_variables NONE\n' "$name") >/dev/null 2>&1
	sge_execd >>gridengine.log 2>&1
	qconf -sconf global | sed 's/^min_uid .*/min_uid 0/; s/^min_gid .*/min_gid 0/' >global # root submits
	qconf -Mconf global >/dev/null 2>&1
	cat >editor <<-END
		#!/bin/sh
		sed -i 's/^qname .*/qname peers.q/; s/^hostlist .*/hostlist $name/; s/^pe_list .*/pe_list NONE/; s/^load_thresholds .*/load_thresholds NONE/' "\$1"
		sleep 1
		touch "\$1" # a file that is as old as before counts as unchanged
	END
	chmod 755 editor
	EDITOR=$PWD/editor qconf -aq peers.q >/dev/null 2>&1
	qconf -rattr queue slots "$slots" peers.q >/dev/null 2>&1
	qconf -ssconf | sed 's/^schedule_interval .*/schedule_interval 0:0:1/; s/^flush_submit_sec .*/flush_submit_sec 1/; s/^flush_finish_sec .*/flush_finish_sec 1/' >scheduler
	qconf -Msconf scheduler >/dev/null 2>&1
	until_ok 60 timeout 20 qsub -sync y -b y -o /dev/null -e /dev/null /bin/true || { qstat -f >&2; return 1; }
	rounds=3 started gridengine qsub -sync y -b y -o /dev/null -e /dev/null /bin/true
	rate gridengine array "${SGE_ARRAY:-100}" qsub -sync y -b y -o /dev/null -e /dev/null -t "1-${SGE_ARRAY:-100}" /bin/true
	rate gridengine submit "$submissions" one_after_another qsub -b y -o /dev/null -e /dev/null /bin/true
}

with_dask() {
	install python3-distributed || return 1
	$python "$here/dask_work.py" "$slots" "$array" "$rounds" >>results
}

for system in ${SYSTEMS:-candor slurm gridengine dask}; do
	with_"$system" || echo "peers: $system could not be measured" >&2
	[ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
	stop_gridengine
	wait 2>/dev/null
	pids=()
done
echo "$(nproc) processors, $slots slots, load $(cut -d ' ' -f 1 /proc/loadavg), $(date +%F); in brackets: Candor's, as a multiple"
awk '
	{value[$1, $2] = $3; if (!seen[$1]++) name[++n] = $1}
	function cell(s, m, better,   v, c) {
		if (!((s, m) in value)) return "-"
		v = value[s, m]; c = value["candor", m]
		text = m == "start" ? sprintf("%.1f ms", v * 1e3) : sprintf("%.0f/s", v)
		if (s != "candor" && c > 0 && v > 0) text = text sprintf(" (%.1f)", better == "less" ? v / c : c / v)
		return text
	}
	END {
		printf "%-12s %18s %22s %24s %18s\n", "", "one start", "array of processes", "submissions by command", "no-op tasks"
		for (i = 1; i <= n; i++) printf "%-12s %18s %22s %24s %18s\n", name[i], cell(name[i], "start", "less"), cell(name[i], "array", "more"), cell(name[i], "submit", "more"), cell(name[i], "noop", "more")
	}' results
