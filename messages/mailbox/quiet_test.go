package mailbox

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A replica that was given no log says why it ends its process.
func TestReplicaWithoutALogSaysWhyItEnds(t *testing.T) {
	if os.Getenv("CANDOR_TEST_ENDS") != "" {
		c := &Config{}
		c.fillFunctions()
		c.faults.stuck(errors.New("a write takes more than 20 seconds"))
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "CANDOR_TEST_ENDS=yes")
	said, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the process ended with %v, not with status 1; it said %q", err, said)
	}
	if !strings.Contains(string(said), "a write takes more than 20 seconds") {
		t.Errorf("the process said %q, not why it ended", said)
	}
}
