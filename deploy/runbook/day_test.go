package runbook

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// The runbook's section Day one uses the user alice. The test of this section uses another user instead of alice. The
// constant `ordinary` is the name of this user, which exists on every machine and runs nothing.
const ordinary = "games"

// day is a site that is made from the lines of the runbook's section Day one.
type day struct {
	*racks
	home string // home directory of the ordinary user
	as   *syscall.Credential
	said *strings.Replacer // replaces names of the page by names of this test
}

// dayOne carries out every line of the section "Day one". An ordinary user with a home directory of mode 0700 submits
// two jobs. The first job works in that directory, and the second job fails.
func dayOne(t *testing.T, binary string) {
	u, err := user.Lookup(ordinary)
	if os.Geteuid() != 0 || err != nil {
		t.Skip("only root can be other users, and this needs a user ", ordinary)
	}
	dir, err := os.MkdirTemp("/tmp", "candor-day-") // every user can enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &day{home: filepath.Join(dir, "home"), racks: &racks{operator: &operator{T: t, binary: filepath.Join(dir, "candor"), dir: dir}, hosts: map[string]*await.Process{}}}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	d.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	d.said = strings.NewReplacer("10.0.0.", "127.0.79.", "/etc/candor", filepath.Join(dir, "etc"), "alice", ordinary)
	program, err := os.ReadFile(binary)
	for _, err := range []error{err, os.Chmod(dir, 0o755), os.WriteFile(d.binary, program, 0o755), os.Symlink("rack1", filepath.Join(dir, "state")),
		os.Mkdir(d.home, 0o700), os.Chown(d.home, uid, gid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		d.stop("rack1", "rack2", "rack3")
		d.endExecutors()
	})
	blocks := sectionBlocks(t, "Day one")
	if len(blocks) != 4 {
		t.Fatalf("the section Day one has %d blocks of commands: this test knows what to do after each of 4", len(blocks))
	}

	d.types(nil, blocks[0])
	d.types(nil, blocks[1])
	d.until("nodes", "rack1 Up", "rack2 Up", "rack3 Up")
	d.types(nil, blocks[2])
	d.give(filepath.Join(dir, ordinary+"-creds", "creds", ordinary+".creds"), ordinary+".creds")
	d.give(filepath.Join(dir, "etc", "tls", "ca.pem"), "ca.pem")
	d.own("hello.sh", "#!/bin/sh\nid -un\npwd\necho written > result\n")
	d.own("fails.sh", "#!/bin/sh\necho the reason >&2\nexit 2\n")
	out := d.types(d.as, blocks[3]+"candor logs 1\ncat result\n")
	for _, want := range []string{"Job 1 Completed", ordinary + "\n" + d.home + "\n", "written\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the first job does not print %q, but\n%s", want, out)
		}
	}
	login, _, _ := strings.Cut(blocks[3], "candor submit")
	out = d.types(d.as, login+"candor submit --wait fails.sh || echo code $?\ncandor logs 2 --stderr\ncandor why 2\n")
	for _, want := range []string{"ended with exit code 2 on rack", "code 2", "the reason", "candor logs 2 --stderr"} {
		if !strings.Contains(out, want) {
			t.Errorf("the first failure does not print %q, but\n%s", want, out)
		}
	}
}

func sectionBlocks(t *testing.T, title string) (blocks []string) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range shell.FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// types runs the lines of a block in a shell. They run as the user `as`. If `as` is nil, they run as root, who is the
// operator. A line with systemctl, which would start a systemd unit, is not run. Instead, the test starts all hosts.
func (d *day) types(as *syscall.Credential, block string) string {
	d.Helper()
	var script strings.Builder
	starts := false
	for line := range strings.Lines(d.said.Replace(block)) {
		if strings.HasPrefix(line, "systemctl enable --now candor@") {
			starts = true
			continue
		}
		script.WriteString(line)
	}
	c := exec.CommandContext(d.Context(), "sh", "-ec", script.String())
	c.Dir, c.Env = d.dir, []string{"PATH=" + d.dir + ":" + os.Getenv("PATH"), "CANDOR_STATE=" + filepath.Join(d.dir, "rack1"), "CANDOR_ACCOUNT=operator"}
	if as != nil {
		c.Dir, c.Env, c.SysProcAttr = d.home, []string{c.Env[0], "HOME=" + d.home}, &syscall.SysProcAttr{Credential: as}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		d.Fatalf("%s\nends with %v:\n%s", script.String(), err, out)
	}
	if starts {
		etc := filepath.Join(d.dir, "etc")
		for _, host := range []string{"rack1", "rack2", "rack3"} {
			d.hosts[host] = await.Start(d, exec.Command(d.binary, "up", "--config", filepath.Join(etc, "site.yaml"), "--host", host, "--keys", filepath.Join(etc, "keys"),
				"--state", filepath.Join(d.dir, host), "--leave-running", "--log-level", "warn"), "is up")
		}
		d.up(d.hosts["rack1"], d.hosts["rack2"], d.hosts["rack3"])
	}
	return string(out)
}

func (d *day) give(path, name string) {
	text, err := os.ReadFile(path)
	if err != nil {
		d.Fatal(err)
	}
	d.own(name, string(text))
}

// This method writes a file that belongs to the ordinary user.
func (d *day) own(name, text string) {
	path := filepath.Join(d.home, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil {
		err = os.Chown(path, int(d.as.Uid), int(d.as.Gid))
	}
	if err != nil {
		d.Fatal(err)
	}
}
