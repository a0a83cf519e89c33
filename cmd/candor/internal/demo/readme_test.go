package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// The job file and the script in the README and the pages must be valid.

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns the first fenced code block in the given language that contains the given words.
func block(t *testing.T, text, language, words string) string {
	t.Helper()
	for _, part := range strings.Split(text, "```"+language+"\n")[1:] {
		if body, _, _ := strings.Cut(part, "```"); strings.Contains(body, words) {
			return body
		}
	}
	t.Fatalf("the page has no %s with %q", language, words)
	return ""
}

func TestREADMEJobs(t *testing.T) {
	job, err := jobfile.ParseDocument([]byte(block(t, page(t, "deploy/docs/jobs.md"), "yaml", "flights")))
	if err != nil {
		t.Fatal(err)
	}
	if len(job.Spec.Stages) != 2 || job.Spec.Budget != 25*credit || job.Spec.Utility.Weights.Of("map") != 3 {
		t.Errorf("the job file is read as %+v", job.Spec)
	}
	nothing := func(string) (string, bool) { return "", false }
	script, err := jobfile.ParseScript([]byte(block(t, page(t, "README.md"), "sh", "#CANDOR")), nil, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Options.Apply(script); err != nil {
		t.Fatal(err)
	}
	stage := script.Spec.Stages[0]
	if script.Spec.Budget != 5*credit || stage.CPUs != 2 || stage.Memory != 4<<30 || stage.TimeLimit.Std() != 10*time.Minute || len(stage.Array) != 1 {
		t.Errorf("the script is read as %+v", script.Spec)
	}
}
