package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// containers are programs that need namespaces, and the text that each must print. The second program makes the system
// calls of Apptainer for an ordinary user: a user and a mount namespace, an overlay, bind mounts, and another root.
var containers = []struct{ needs, script, prints string }{
	{"unshare", `unshare -U -r -m sh -ec 'id -u; mount -t tmpfs none /mnt; mount --bind . /mnt; touch /mnt/here'; ls`, "0 here"},
	{"unshare", `unshare -U -r -m sh -ec '
mount -t tmpfs none /mnt; cd /mnt; mkdir low up work root; mkdir low/old low/usr low/proc; ln -s usr/bin usr/lib low; ln -s usr/lib64 low/lib64; echo image >low/name
mount -t overlay none -o lowerdir=low,upperdir=up,workdir=work,userxattr root; mount --rbind /usr root/usr; mount --rbind /proc root/proc
echo more >root/more; cd root; pivot_root . old; umount -l /old; cat /name /more; test ! -e /etc; cd /'`, "image more"},
	{"bwrap", `bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --bind . /work --unshare-user --unshare-pid --unshare-uts --hostname inside sh -c 'echo $$; hostname; touch /work/here'; ls`, "here inside"},
}

func allowing(allow bool) func(*runner.Config) {
	return func(c *runner.Config) { c.Namespaces = allow }
}

// TestContainersInTasks starts programs that make containers (such as bubblewrap) in tasks. If the site allows no
// namespaces, these programs must fail.
func TestContainersInTasks(t *testing.T) {
	for _, allow := range []bool{false, true} {
		b := strangers(t, allowing(allow))
		if b.can(agent.AbilityNamespaces) != allow {
			t.Errorf("the node has %v", b.Abilities())
		}
		for _, c := range containers {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Log("not tried: ", err)
				continue
			}
			s := b.start(sh(c.script))
			f := s.wait()
			got := strings.Fields(b.read(s, false))
			missing := 0
			for _, word := range strings.Fields(c.prints) {
				if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+word+" ") {
					missing++
				}
			}
			if (missing > 0) == allow {
				t.Errorf("namespaces allowed: %v: %s printed %q, %q, ended %+v", allow, c.script, got, b.read(s, true), f)
			}
		}
	}
}

// TestNamespacesOpenNothing checks that a task with all capabilities in its own namespaces reaches nothing outside of
// them.
func TestNamespacesOpenNothing(t *testing.T) {
	b := strangers(t, allowing(true))
	state := filepath.Dir(b.dir)
	secret := filepath.Join(state, "secret")
	// so that only the mount over the state directory hides the state
	for _, dir := range []string{state, filepath.Dir(state)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tries := []string{
		"cat " + secret, "umount " + state + " && echo unmounted", "umount -l " + state + " && echo unmounted; cat " + secret, "mount --bind / /mnt && cat /mnt" + secret,
		"mount --rbind / /mnt && umount -l /mnt" + state + " && cat /mnt" + secret, "mount --move " + state + " /mnt && echo moved", "mount -o remount,rw / && echo remounted",
		"mount -t tmpfs none /mnt && cd /mnt && mkdir old && pivot_root . old && /old/usr/bin/cat /old" + secret,
		"mount -t proc none /mnt && ls -d /mnt/" + itoa(os.Getpid()), "nsenter -t 1 -m true && echo entered", "ls -d /proc/" + itoa(os.Getpid()),
		"unshare -n true && echo network", "unshare -i true && echo ipc", "kill -0 1 && echo signals", "cat /proc/1/environ", "ls /proc/1/root/",
		"echo 1 >/proc/sys/kernel/sysrq && echo set", "echo 1 >/proc/sys/net/ipv4/ip_forward && echo set", "mknod null c 1 3 && echo made", "dmesg", "date -s @1 >/dev/null && echo set",
		"mount -t cgroup2 none /mnt && echo mounted", "mount -t sysfs none /mnt && echo mounted", "mount -t debugfs none /mnt && echo mounted",
		"chown 0:0 . && touch rooted && chmod 4755 rooted && chroot / su -c true nobody && echo became", "ls " + b.dir + "/jobs | grep -v bob",
	}
	var script strings.Builder
	for _, try := range tries {
		fmt.Fprintf(&script, "unshare -U -r -m sh -c '(%[1]s) >got 2>/dev/null </dev/null'; if test -s got; then echo '%[1]s:'; cat got; fi; rm -f got\n", try)
	}
	ann := b.start(of("ann", 7, sh("echo ready; exec sleep 600")))
	b.read(ann, false)
	bob := b.start(of("bob", 8, sh(script.String()+"unshare -U -r id -u")))
	bob.wait()
	if got := b.read(bob, false); got != "0\n" {
		t.Errorf("bob got %q, %q", got, b.read(bob, true))
	}
	if len(ann.done) != 0 {
		t.Errorf("ann's task was ended: %+v", <-ann.done)
	}
	ann.Stop(0)
	ann.wait()
}
