package runbook

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func build(t *testing.T, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "candor")
	command := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", binary}, flags...), "./cmd/candor")...)
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	return binary
}

var (
	// Only blocks of the language "sh" have commands. Other blocks show what commands print.
	shell = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// inText finds a command of candor in a sentence of a page.
	inText = regexp.MustCompile("`candor ([^`]+)`")
	// inShell finds commands of candor in a shell line or a systemd unit.
	inShell = regexp.MustCompile(`(?m)^(?:ExecStart=/usr/local/bin/)?candor (.*)$`)
	// inList finds the arguments of a container, as a list in YAML or JSON brackets.
	inList = regexp.MustCompile(`(?m)^\s*(?:command|args): \[(.*)\]$|CMD \["candor", (.*)\]$`)
	flag   = regexp.MustCompile(`^--([a-z-]+)$`)
	name   = regexp.MustCompile(`^[a-z]+$`)
)

func commands(t *testing.T, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	source := string(text)
	if filepath.Ext(file) == ".md" {
		source = ""
		for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
			source += block[1]
		}
		for _, m := range inText.FindAllStringSubmatch(string(text), -1) {
			all = append(all, strings.Fields(m[1]))
		}
	}
	for _, m := range inShell.FindAllStringSubmatch(source, -1) {
		all = append(all, strings.Fields(m[1]))
	}
	if filepath.Ext(file) == ".md" {
		return all // in a page, such lists belong to job files
	}
	for _, m := range inList.FindAllStringSubmatch(source, -1) {
		list := strings.NewReplacer(",", " ", `"`, " ").Replace(m[1] + m[2])
		if arguments := strings.Fields(list); arguments[0] != "sh" {
			all = append(all, arguments)
		}
	}
	return all
}

// TestRunbook builds the program once for all its subtests.
func TestRunbook(t *testing.T) {
	binary := os.Getenv("CANDOR_BINARY") // this variable names a program that was built before
	if binary == "" {
		binary = build(t)
	}
	for name, look := range map[string]func(*testing.T, string){
		"commands": commandsExist, "join": joinSites, "nodes": addAndDrain, "hosts": threeHosts, "peer": peerThatOwes, "damage": damagedFiles, "putback": replicasPutBack, "level": levelRises, "day": dayOne,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look(t, binary)
		})
	}
}

// own copies the program under another name, so that a test can distinguish its processes from others.
func own(t *testing.T, binary string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "candor")
	err := os.Link(binary, name)
	if err != nil { // a hard link failed, so the copy is on another disk
		var program []byte
		if program, err = os.ReadFile(binary); err == nil {
			err = os.WriteFile(name, program, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// commandsExist checks that each command in the documentation, in the scripts for containers and in the systemd units
// exists in the program, with its flags.
func commandsExist(t *testing.T, binary string) {
	help := map[string]string{}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(pages, "README.md", "../../README.md", "../container/Containerfile", "../container/compose.yaml",
		"../chart/templates/statefulset.yaml", "../chart/templates/daemonset.yaml",
		"../systemd/candor@.service", "../systemd/candor-nodeagent@.service",
	) {
		found := commands(t, file)
		if len(found) == 0 && filepath.Ext(file) != ".md" {
			t.Errorf("%s: starts nothing", file)
		}
		for _, arguments := range found {
			check(t, binary, file, arguments, help)
		}
	}
	if err := unknown(binary, []string{"node", "vanish"}, help); err == "" {
		t.Error("a command that there is not passes")
	}
}

// check asks the program for the help of a command, and looks for the flags in it.
func check(t *testing.T, binary, file string, arguments []string, help map[string]string) {
	t.Helper()
	var path []string
	for _, a := range arguments {
		if !name.MatchString(a) {
			break
		}
		path = append(path, a)
	}
	why := unknown(binary, path, help)
	for why != "" && len(path) > 1 { // the last words may be arguments, if the command takes some
		path = path[:len(path)-1]
		if unknown(binary, path, help) == "" && takesArguments(help, path) {
			why = ""
		}
	}
	if why != "" {
		t.Errorf("%s: candor %s: %s", file, strings.Join(arguments, " "), why)
		return
	}
	for _, a := range arguments {
		if m := flag.FindStringSubmatch(a); m != nil && !strings.Contains(help[strings.Join(path, " ")], "--"+m[1]+" ") {
			t.Errorf("%s: candor %s has no flag %s", file, strings.Join(path, " "), a)
		}
	}
}

// unknown returns an error text if a command does not exist, otherwise "". The help of a command begins its usage
// with the command itself.
func unknown(binary string, path []string, help map[string]string) string {
	whole := strings.Join(path, " ")
	if topic, found := strings.CutPrefix(whole, "help "); found {
		if out, err := exec.Command(binary, "help", topic).CombinedOutput(); err != nil || strings.Contains(string(out), "nknown") {
			return string(out)
		}
		return ""
	}
	if help[whole] == "" {
		out, err := exec.Command(binary, append(path, "--help")...).CombinedOutput()
		if err != nil {
			return err.Error() + ": " + string(out)
		}
		help[whole] = string(out)
	}
	if !strings.Contains(help[whole], "\n  candor "+whole+" ") && !strings.Contains(help[whole], "\n  candor "+whole+"\n") {
		return "is no command"
	}
	return ""
}

// takesArguments reports whether the usage of a command has arguments.
func takesArguments(help map[string]string, path []string) bool {
	whole := strings.Join(path, " ")
	_, usage, _ := strings.Cut(help[whole], "\n  candor "+whole+" ")
	usage, _, _ = strings.Cut(usage, "\n")
	return usage != "" && !strings.HasPrefix(usage, "[command]") && usage != "[flags]"
}
