package solve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// candor runs `candor solve` with the given arguments. The argument `in` is the text on the command's standard input.
func candor(in string, args ...string) (string, error) {
	var out bytes.Buffer
	c := Command()
	c.SetArgs(args)
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.Execute()
	return out.String(), err
}

const figure2 = `{"alpha":0.5,"jobs":[{"budget":100,"kind":"linear","weights":[3,2]},
	{"budget":200,"kind":"linear","weights":[3,2]},{"budget":160,"kind":"linear","weights":[2,4]}]}`

func TestSolvePrintsOneDocument(t *testing.T) {
	for _, args := range [][]string{{"proportional"}, {"proportional", "--pretty"}} {
		out, err := candor(figure2, args...)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Subbudgets, Allocation [][]float64
			Converged              bool
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !got.Converged || len(got.Subbudgets) != 3 || len(got.Allocation) != 3 {
			t.Errorf("%s", out)
		}
		if pretty := strings.Count(out, "\n") > 1; pretty != (len(args) > 1) {
			t.Errorf("%v printed %d lines", args, strings.Count(out, "\n"))
		}
	}
}

func TestSolveRefuses(t *testing.T) {
	for _, c := range []struct {
		says, in string
		args     []string
	}{
		{"name one mechanism", "", nil},
		{`"nofile.json": is an argument too many: name one mechanism; the document comes from standard input`, "", []string{"proportional", "nofile.json"}},
		{`"lottery": is not one of`, "", []string{"lottery"}},
		{"jobs[0].budget", `{"alpha":0.5,"jobs":[{"budget":-1,"kind":"log","weights":[1]}]}`, []string{"proportional"}},
		{"ends in the middle", "{", []string{"proportional"}},
		{"ends in the middle", "", []string{"proportional"}},
	} {
		out, err := candor(c.in, c.args...)
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.args, err, c.says)
		}
		if out != "" {
			t.Errorf("%v printed %q", c.args, out)
		}
	}
}

// The command waits for a document on its standard input. An interrupt must end it.
func TestAnInterruptEndsTheDocument(t *testing.T) {
	c := Command()
	in, typed := io.Pipe()
	defer typed.Close()
	c.SetIn(in)
	c.SetArgs([]string{"proportional"})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := c.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
