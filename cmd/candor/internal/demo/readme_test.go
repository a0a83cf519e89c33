package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// The README and the pages are held to their examples: the job file and the script are
// read, and the requests are sent by a client that knows nothing of Candor.

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is the first fenced block of a language that contains some words.
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
	if script.Spec.Budget != 5*credit || stage.Class != "map" || stage.TimeLimit.Std() != 10*time.Minute || len(stage.Array) != 1 {
		t.Errorf("the script is read as %+v", script.Spec)
	}
}

// TestREADMERequests sends the requests of the page with plain nats.go. The first request
// is sent twice.
func TestREADMERequests(t *testing.T) {
	text := block(t, page(t, "deploy/docs/nats.md"), "sh", "nats request")
	config := embedded.Default()
	config.State, config.Listen = t.TempDir(), "127.0.0.1:0"
	site, err := embedded.Start(t.Context(), config, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	prefix := regexp.MustCompile(`--inbox-prefix (\S+)`).FindStringSubmatch(text)
	client, err := nats.Connect(site.URL(), nats.UserCredentials(site.CredsFile("alice")), nats.CustomInboxPrefix(prefix[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	shown := regexp.MustCompile(`nats request (\S+) (?:\\\n\s*)?'(.*)'`).FindAllStringSubmatch(text, -1)
	if len(shown) < 3 {
		t.Fatalf("the page shows %d requests", len(shown))
	}
	for _, request := range append(shown[:1:1], shown...) {
		reply := map[string]any{}
		message, err := client.Request(request[1], []byte(request[2]), 10*time.Second)
		if err != nil {
			t.Fatalf("%s: %v", request[1], err)
		}
		if err := json.Unmarshal(message.Data, &reply); err != nil || message.Header.Get(micro.ErrorCodeHeader) != "" {
			t.Errorf("%s is answered %v %s (%v)", request[1], message.Header, message.Data, err)
		}
		if strings.Contains(request[1], "."+messages.VerbSubmit+".") && reply["job"] != 1.0 {
			t.Errorf("the submission is answered %s, want job 1 each time", message.Data)
		}
	}
}
