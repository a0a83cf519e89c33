package packages

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// The file "releases" must agree with the program: each line has the name, the level and the commit of a release. If
// the source has a Git history, the commits must be in it.
func TestReleasesAreTheOnesOfTheProgram(t *testing.T) {
	text, err := os.ReadFile("releases")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(messages.Releases) {
		t.Fatalf("%d releases in the file, %d in the program", len(lines), len(messages.Releases))
	}
	for i, r := range messages.Releases {
		words := strings.Fields(lines[i])
		if len(words) != 3 || words[0] != r.Name || words[1] != fmt.Sprint(r.Level) || r.Level > messages.Level {
			t.Errorf("%q is not %+v", lines[i], r)
			continue
		}
		if exec.Command("git", "rev-parse", "--verify", "-q", "HEAD").Run() != nil {
			continue // the source is not a clone of the Git history
		}
		if shallow, _ := exec.Command("git", "rev-parse", "--is-shallow-repository").Output(); strings.HasPrefix(string(shallow), "true") {
			continue
		}
		if exec.Command("git", "merge-base", "--is-ancestor", words[2], "HEAD").Run() != nil {
			t.Errorf("the commit of %s is not in the history", r.Name)
		}
	}
}
