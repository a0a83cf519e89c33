package runner_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestTasksStartAlike starts a site whose process has unusual limits and priorities. The tasks of the site must have
// the usual limits and priorities.
func TestTasksStartAlike(t *testing.T) {
	const mark = "CANDOR_TEST_LIMITS"
	if os.Geteuid() != 0 {
		t.Skip("needs root: others cannot take a lower priority back")
	}
	if os.Getenv(mark) == "" {
		again := exec.Command("sh", "-c", `ulimit -Sn 4000; ulimit -Sc unlimited; ulimit -Sf 4000000; ulimit -St 4000; ulimit -Ss 4096
			prlimit --pid $$ --rtprio=5:9 --nice=25:30 2>/dev/null # which not each root may
			prlimit --pid $$ --memlock=65536:131072 --nproc=5000: --sigpending=10: --msgqueue=4096: --rttime=900000000:
			echo 321 >/proc/self/oom_score_adj; exec chrt -i 0 ionice -c 3 setarch -R nice -n 7 "$0" -test.run '^TestTasksStartAlike$'`, os.Args[0])
		again.Env = append(os.Environ(), mark+"=yes")
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	for _, noCells := range []bool{false, true} {
		b := newBench(t, func(c *runner.Config) { c.NoCells = noCells })
		s := b.start(agent.Program{Script: `ulimit -Sn; ulimit -Sc; ulimit -Sf; ulimit -St; ulimit -Ss; cat /proc/self/oom_score_adj; nice; ls /proc/self/fd | wc -l
			awk '/Max processes/ {print "processes", $3 == $4} /pending/ {print "signals", $4 == $5} /locked memory/ {print "locked", $4} /msgqueue/ {print "queues", $4}
				/nice/ {print "nice", $4, $5} /realtime priority/ {print "realtime", $4, $5} /realtime timeout/ {print "time", $4}' /proc/self/limits
			chrt -p $$ | head -n 1 | cut -d: -f2; ionice; cat /proc/self/personality 2>/dev/null || true`})
		s.wait()
		said := b.read(s, false)
		if want := "1024\n0\nunlimited\nunlimited\n8192\n0\n0\n4\nprocesses 1\nlocked 131072\nsignals 1\nqueues 819200\nnice 0 0\nrealtime 0 0\ntime unlimited\n SCHED_OTHER\nnone: prio 0\n00000000\n"; said != want {
			t.Errorf("without cells: %v: %q, want %q", noCells, said, want)
		}
	}
}

// TestUmaskIsTheSubmitters checks that a task has the umask of its job, whatever umask the site was started with.
func TestUmaskIsTheSubmitters(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o007))
	for mask, want := range map[string]string{"": "0022\n644\n", "077": "0077\n600\n", "000": "0000\n666\n"} {
		b := newBench(t, nil)
		s := b.start(agent.Program{Script: "umask; touch made; stat -c %a made", Umask: mask})
		s.wait()
		if said := b.read(s, false); said != want {
			t.Errorf("umask %q: %q, want %q", mask, said, want)
		}
	}
	b := newBench(t, nil)
	if ended := b.start(agent.Program{Script: "true", Umask: "9"}).wait(); ended.Outcome != agent.Unstartable {
		t.Errorf("%+v: a umask that is none must not start", ended)
	}
}
