package runbook

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+|Fuzz[A-Za-z0-9_]+)\(`)
	faultRow     = regexp.MustCompile("(?m)^\\| .* \\| .* \\| `([A-Za-z0-9_]+)` \\|$")
)

// The file faults.md has a table of faults, with the test that finds each of them. Each of these tests must exist.
func TestFaultsAreKeptFound(t *testing.T) {
	text, err := os.ReadFile("faults.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, f := range testFunction.FindAllStringSubmatch(string(source), -1) {
			there[f[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, used := 0, map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault ") {
			continue
		}
		rows++
		switch row := faultRow.FindStringSubmatch(line); {
		case row == nil:
			t.Errorf("%s: is no row of a fault, how it was found, and a test", line)
		case !there[row[1]]:
			t.Errorf("there is no test %s", row[1])
		case used[row[1]]:
			t.Errorf("%s keeps two faults found", row[1])
		default:
			used[row[1]] = true
		}
	}
	if rows < 40 {
		t.Errorf("the table has %d faults", rows)
	}
}
