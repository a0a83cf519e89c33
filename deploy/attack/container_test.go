package attack

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestAttackOfContainer attacks a site that has of its container what deploy/container
// gives it: processes, mounts, IPC and a host name of its own, no control groups, and root
// with few capabilities, no new privileges and so no namespaces for tasks. It is not in
// the image, and not behind the filter of system calls of a container's runtime.
func TestAttackOfContainer(t *testing.T) {
	t.Parallel()
	s := upContained(t)
	if slices.Contains(s.abilities(), messages.AbilityFreeze) {
		t.Error("a site says that it has control groups, and has none")
	}
	if !everything() { // that it serves is a test of its own: nothing else here starts without namespaces
		s.judge([]attempt{s.goesOn()})
		return
	}
	attack(t, s)
}

// upContained starts such a site with more arguments.
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

// inner is the process of a site that another process started; 0 where none did.
func (s *site) inner() int {
	if s.wrapper == nil {
		return 0
	}
	pid := strconv.Itoa(s.process.Pid)
	text, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	inner, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return inner
}
