package command

import (
	"bytes"
	"strings"
	"testing"
)

func try(args ...string) (string, error) {
	var out bytes.Buffer
	c := New()
	c.SetArgs(args)
	c.SetOut(&out)
	err := c.Execute()
	return out.String(), err
}

func TestListNamesEveryStudy(t *testing.T) {
	out, err := try("--list")
	if err != nil || strings.Count(out, "\n") != len(studies) || !strings.Contains(out, "shudler-tables ") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestBadCommands(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"shudler-tables"}, "--out: missing"},
		{[]string{"shudlers", "--out", t.TempDir()}, `no study "shudlers"`},
		{[]string{"shudler-tables", "--out", t.TempDir()}, "--traces: "},
	} {
		if _, err := try(c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.args, err, c.says)
		}
	}
}
