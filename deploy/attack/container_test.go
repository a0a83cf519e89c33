package attack

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
)

// TestAttackOfContainer attacks a site that runs with the rights of deploy/container: as root with few capabilities, in
// namespaces, without control groups. Its processes can gain no privileges, so tasks have no namespaces. The test has
// no image, and no system call filter of a container runtime.
func TestAttackOfContainer(t *testing.T) {
	t.Parallel()
	s := upContained(t)
	if slices.Contains(s.abilities(), agent.AbilityFreeze) {
		t.Error("a site says that it has control groups, and has none")
	}
	if !everything() { // a short run makes no attacks, and only checks that the site continues to run
		s.judge([]attempt{s.goesOn()})
		return
	}
	attack(t, s)
}

func upContained(t *testing.T, arguments ...string) *site {
	t.Helper()
	return upContainedIn(t, stateDir(t, nil), arguments...)
}

func upContainedIn(t *testing.T, state string, arguments ...string) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, program := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs ", program)
		}
	}
	const capabilities = "-all,+chown,+dac_override,+fowner,+kill,+setgid,+setpcap,+setuid"
	s := &site{T: t, state: state, nodes: 1}
	s.wrapper = []string{"unshare", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
		`mount -t tmpfs none /sys/fs/cgroup; exec setpriv --no-new-privs --bounding-set=` + capabilities + ` --inh-caps=-all "$@"`, "sh"}
	s.begin(nil, append(arguments, "--listen", "127.0.0.1:0")...)
	s.await()
	await.Until(t, "the site's process is in the container", func() bool { return s.inner() != 0 })
	return s
}

// inner returns the ID of the site's process if a wrapper started it. It returns 0 without a wrapper, or before the
// process exists.
func (s *site) inner() int {
	if s.wrapper == nil {
		return 0
	}
	pid := strconv.Itoa(s.process.Pid)
	text, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	inner, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return inner
}
