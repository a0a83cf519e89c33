package runner_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestTasksStartAlike: limits, priority and rank for the kernel's killer are the usual ones, however the site was started.
func TestTasksStartAlike(t *testing.T) {
	const mark = "CANDOR_TEST_LIMITS"
	if os.Geteuid() != 0 {
		t.Skip("needs root: others cannot take a lower priority back")
	}
	if os.Getenv(mark) == "" {
		again := exec.Command("sh", "-c", `ulimit -Sn 4000; ulimit -Sc unlimited; ulimit -Sf 4000000; ulimit -St 4000; ulimit -Ss 4096
			echo 321 >/proc/self/oom_score_adj; exec nice -n 7 "$0" -test.run '^TestTasksStartAlike$'`, os.Args[0])
		again.Env = append(os.Environ(), mark+"=yes")
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	for _, noCells := range []bool{false, true} {
		b := newBench(t, func(c *runner.Config) { c.NoCells = noCells })
		s := b.start(messages.Program{Script: "ulimit -Sn; ulimit -Sc; ulimit -Sf; ulimit -St; ulimit -Ss; cat /proc/self/oom_score_adj; nice; ls /proc/self/fd | wc -l"})
		s.wait()
		said := b.read(s, false)
		if want := "1024\n0\nunlimited\nunlimited\n8192\n0\n0\n4\n"; said != want {
			t.Errorf("without cells: %v: %q, want %q", noCells, said, want)
		}
	}
}

// TestUmaskIsTheSubmitters: files of a task are made without what the job says, whoever started the site.
func TestUmaskIsTheSubmitters(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o007))
	for mask, want := range map[string]string{"": "0022\n644\n", "077": "0077\n600\n", "000": "0000\n666\n"} {
		b := newBench(t, nil)
		s := b.start(messages.Program{Script: "umask; touch made; stat -c %a made", Umask: mask})
		s.wait()
		if said := b.read(s, false); said != want {
			t.Errorf("umask %q: %q, want %q", mask, said, want)
		}
	}
	b := newBench(t, nil)
	if ended := b.start(messages.Program{Script: "true", Umask: "9"}).wait(); ended.Outcome != messages.Unstartable {
		t.Errorf("%+v: a umask that is none must not start", ended)
	}
}
