package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// units returns the paths of copies of the unit files. In the copies, the path of each program is replaced by the path
// of this test program, because systemd-analyze requires that the programs exist.
func units(t *testing.T) (paths []string) {
	found, err := filepath.Glob("*.service")
	if err != nil || len(found) == 0 {
		t.Fatalf("no units: %v", err)
	}
	env := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(env, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("/usr/local/bin/candor", os.Args[0], "/etc/candor/nodeagent.env", env).Replace(string(text))
		path := filepath.Join(dir, strings.Replace(name, "@", "@one", 1))
		if err := os.WriteFile(path, []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: the units were not checked by it")
		return
	}
	for _, unit := range units(t) {
		out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
		if err != nil || strings.Contains(string(out), filepath.Base(unit)) {
			t.Errorf("%s: %v\n%s", filepath.Base(unit), err, out)
		}
	}
}

// The command systemd-analyze security rates how exposed a service is. mostExposed is the highest allowed rating, in
// tenths. Without the settings in doc.go the rating is 7.9.
const mostExposed = 58

func TestUnitsAreHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: the units were not rated")
		return
	}
	for _, unit := range units(t) {
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold="+strconv.Itoa(mostExposed), unit).CombinedOutput()
		if strings.Contains(string(out), "unrecognized option") { // systemd before version 250 does not know the option
			t.Log("systemd-analyze is too old: the units were not rated")
			return
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(unit), err, out)
		}
	}
}

// The unit files must have the settings that let tasks survive a restart of their node's agent.
func TestUnitsKeepTasks(t *testing.T) {
	for _, unit := range units(t) {
		if strings.Contains(unit, "candor-door") { // the door has no tasks
			continue
		}
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"Type=notify", "KillMode=process", "Delegate=yes", "--leave-running"} {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s lacks %s", filepath.Base(unit), line)
			}
		}
	}
}
