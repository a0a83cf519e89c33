package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/embedded"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// Every command of a page runs, one block after another, on a site that is as "candor up"
// makes it. A page is read by somebody who begins there, so each has a site of its own.
func TestPages(t *testing.T) {
	bin := build(t)
	for _, page := range []string{"tutorial.md", "jobs.md", "markets.md", "from-slurm.md", "from-kubernetes.md"} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			var blocks []string
			for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
				blocks = append(blocks, block[1])
			}
			walk(t, bin, blocks)
		})
	}
}

// begins are the first words of commands of the README that other tests run: they build
// the program, run for a long time, or need a terminal.
var begins = []string{"make ", "bin/candor up", "candor up", "export PATH", "candor top"}

// Every other command of the README runs, in its order.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[1], "#!") {
			continue // a script of a user
		}
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			if !slices.ContainsFunc(begins, func(word string) bool { return strings.HasPrefix(line, word) }) {
				commands = append(commands, line)
			}
		}
	}
	if len(commands) < 8 {
		t.Fatalf("the README has %d commands", len(commands))
	}
	walk(t, build(t), commands)
}

// build makes the program, and returns the directory that has it.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "candor"), "./cmd/candor")
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	return dir
}

// walk runs blocks of commands in one directory, against a new site.
func walk(t *testing.T, bin string, blocks []string) {
	t.Helper()
	c := embedded.Default()
	c.State, c.Listen = filepath.Join(t.TempDir(), "state"), "127.0.0.1:0"
	c.Tasks.User = "self" // tasks write where the reader works
	s, err := embedded.Start(t.Context(), c, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	for _, block := range blocks {
		run := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
		run.Dir, run.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CANDOR_STATE="+c.State, "NO_COLOR=1")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v\n%s", block, err, out)
		}
		t.Logf("%s\n%s", block, out)
	}
}
