package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// overview is what "candor top" prints as JSON.
type overview struct {
	Site    messages.Name         `json:"site"`
	Account money.AccountReply    `json:"account"`
	Nodes   []market.NodeStatus   `json:"nodes"`
	Markets []market.MarketStatus `json:"markets"`
}

// queries are command lines that show a reply. Each has the type of its reply and some words of the output.
var queries = []struct {
	line  string
	reply any
	words string
}{
	{"jobs", &jobmsg.JobsReply{}, "WaitingForShare"},
	{"job 103", &jobmsg.JobDetail{}, "8 credits (4.5 given back)"},
	{"why 104", &market.WhyReply{}, "a larger budget raises its share"},
	{"cancel 103", &jobmsg.CancelReply{}, "Cancelled job 103, which was Running"},
	{"nodes", &market.NodesReply{}, "map 3/4, reduce 0/1"},
	{"markets", &market.MarketsReply{}, "proportional"},
	{"top", &overview{}, "1 of 2 nodes up"},
	{"account", &money.AccountReply{}, "79.5 credits"},
	{"account climate", &money.AccountReply{}, "79.5 credits"},
	{"account --all", &money.AccountsReply{}, "climate"},
	{"account member add climate alice", &money.AccountReply{}, "climate"},
	{"account member remove climate alice", &money.AccountReply{}, "climate"},
	{"statement", &money.StatementReply{}, "spring allocation"},
	{"grant climate 10", &money.AccountReply{}, "Granted 10 credits to climate; climate now has 79.5 credits available"},
	{"grant climate 10 --expires 90d", &money.AccountReply{}, "for 90d00h"},
	{"account freeze climate --reason audit", &money.AccountReply{}, "climate"},
	{"account unfreeze climate", &money.AccountReply{}, "climate"},
	{"account credit climate 5", &money.AccountReply{}, "climate"},
	{"project create climate --owner alice", &money.AccountReply{}, "climate"},
	{"project show climate", &money.AccountReply{}, "79.5 credits"},
	{"project list", &money.AccountsReply{}, "climate"},
	{"project member add climate bob --role auditor", &money.AccountReply{}, "climate"},
	{"project member remove climate bob", &money.AccountReply{}, "climate"},
	{"project limit climate bob 50", &money.AccountReply{}, "climate"},
	{"project role climate bob owner", &money.AccountReply{}, "climate"},
	{"transfer bob 5 --from climate", &money.AccountReply{}, "Transferred 5 credits to bob; climate now has 79.5 credits available"},
	{"withdraw climate 5 --reason end", &money.AccountReply{}, "Withdrew 5 credits from climate"},
	{"correct job/charge --reason fault", &money.CorrectReply{}, "Corrected job/charge: moved 1 credit from $site back to climate"},
	{"books", &money.BooksReply{}, "The books balance"},
	{"books --full", &money.BooksReply{}, "The books balance"},
	{"version", &buildVersion{}, "candor "},
	{"--version", &buildVersion{}, "candor "},
}

func TestCommandsShowReplies(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	for _, q := range queries {
		s.Run(strings.Fields(q.line)...).Expect(t, cli.CodeOK, q.words, "")
	}
}

func TestCommandsPrintTheReplyAsJSON(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	for _, q := range queries {
		got := s.Run(append([]string{"--json=true"}, strings.Fields(q.line)...)...)
		into := reflect.New(reflect.TypeOf(q.reply).Elem()).Interface()
		d := json.NewDecoder(strings.NewReader(got.Out))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || got.Code != cli.CodeOK || strings.Count(got.Out, "\n") != 1 {
			t.Errorf("%s: %v, %+v", q.line, err, got)
		}
		if reflect.DeepEqual(into, q.reply) {
			t.Errorf("%s: printed an empty reply: %s", q.line, got.Out)
		}
	}
}

func TestRequestsSayWhatWasAsked(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Bank, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return clienttest.Account(), nil })
	var jobs []jobmsg.JobsRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		jobs = append(jobs, r)
		return jobmsg.JobsReply{More: len(jobs) == 1, Next: "mark", Jobs: make([]jobmsg.JobSummary, min(r.Limit, 600))}, nil
	})
	var grant money.GrantRequest
	clienttest.Answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) {
		grant = r
		return money.AccountReply{}, nil
	})
	var history []money.StatementRequest
	clienttest.Answer(s, messages.Bank, messages.VerbStatement, func(r money.StatementRequest) (money.StatementReply, error) {
		history = append(history, r)
		return money.StatementReply{Account: "bob", Opening: messages.Credit, More: len(history) == 1, Entries: []money.Entry{{Number: uint64(len(history))}}}, nil
	})
	s.Run("jobs", "--owner", "bob", "--active", "-n", "1500").Expect(t, 0, "", "")
	if want := (jobmsg.JobsRequest{Account: "bob", Active: true, Limit: 1000, Sort: "-job"}); !reflect.DeepEqual(jobs[0], want) || len(jobs) != 2 || jobs[1].Limit != 900 || jobs[1].After != "mark" {
		t.Errorf("jobs: %+v", jobs)
	}
	s.Run("grant", "bob", "12.5", "--reason", "spring", "--key", "k").Expect(t, 0, "", "")
	if want := (money.GrantRequest{Key: "k", Account: "bob", Amount: 12_500_000, Reason: "spring"}); grant != want {
		t.Errorf("grant: %+v", grant)
	}
	s.Run("statement", "bob", "--from", "24h", "--to", "2026-03-01T11:00:00Z").Expect(t, 0, "opening balance 1 credit", "")
	want := money.StatementRequest{Account: "bob", From: clienttest.At(3600 - 86400), To: clienttest.At(-3600), Limit: 1000}
	if len(history) != 2 || history[0] != want || history[1].After != 1 {
		t.Errorf("statement: %+v", history)
	}
}

// A command that only groups other commands must list these commands, and exit with the code for wrong usage. So a
// script that forgets the subcommand stops.
func TestGroupsSayWhatThereIs(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	s.Tree = wholeFor
	groups := 0
	walk(whole(), func(c *cobra.Command) {
		if !c.HasParent() || !c.HasAvailableSubCommands() {
			return
		}
		if got := s.Run(strings.Fields(c.CommandPath())[1:]...); strings.Contains(got.Err, "say what to do: ") {
			groups++
			got.Expect(t, cli.CodeUsage, "", c.Commands()[0].Name())
		} else if strings.Contains(got.Out, "Usage:") {
			t.Errorf("%s shows its help, with exit code %d", c.CommandPath(), got.Code)
		}
	})
	if groups < 12 {
		t.Errorf("%d groups", groups)
	}
}

func TestAnUnknownShellIsWrongUsage(t *testing.T) {
	s := newSite(t)
	s.Run("completion").Expect(t, cli.CodeUsage, "", "say what to do: bash, fish, powershell or zsh")
	s.Run("completion", "nosuch").Expect(t, cli.CodeUsage, "", `unknown command "nosuch"`)
	s.Run("completion", "bash").Expect(t, cli.CodeOK, "__complete", "")
}

func TestWrongUsageIsExplained(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	s.Tree = wholeFor
	for line, want := range map[string]string{
		"jbos":                  `candor: unknown command "jbos": did you mean job or jobs?`,
		"drain node1":           `candor: unknown command "drain": did you mean candor node drain?`,
		"jobs 6":                `candor jobs: "candor jobs" takes no job number: "candor job 6" shows this job`,
		"jobs six":              `takes no arguments: leave out "six"`,
		"simulate nofile":       `candor simulate: takes no arguments: leave out "nofile"` + "\nUsage: candor simulate --trace",
		"market show":           `candor market: unknown command "show"` + "\nSee: candor market --help",
		"config nope":           `candor config: unknown command "nope"`,
		"jobs --actve":          "candor jobs: unknown flag: --actve: did you mean --active?\nSee: candor jobs --help",
		"jobs --limit 0":        "candor jobs: --limit 0: must be a whole number from 1 on",
		"jobs --limit x":        `candor jobs: --limit "x": `,
		"jobs extra":            "Usage: candor jobs",
		"job":                   "Usage: candor job NUMBER",
		"job x":                 `candor job: "x" is not the number of a job: "candor jobs" lists your jobs`,
		"job 0":                 "is not the number of a job",
		"cancel 1 x":            `candor cancel: "x" is not the number of a job`,
		"grant bob much":        `candor grant: amount "much": must be a decimal number`,
		"grant bob":             "Usage: candor grant NAME AMOUNT",
		"account member":        "say what to do: add or remove",
		"account climate --all": "--all lists every account",
		"account a b":           "takes at most 1 argument, not 2",
		"statement --from then": `--from "then": write it like 2026-01-31`,
		"statement -n -1":       "--limit -1",
		"statement -n 0":        "--limit 0",
		"logs 1 --task -5":      "--task -5: must be the position of a task",
		"top --interval 0s":     "--interval 0s: must be at least 50ms",
		"jobs --timeout 0s":     "--timeout 0s: must be above 0",
		"jobs --timeout soon":   `--timeout "soon": write a time like 10s, 500ms or 1m30s`,
		"node token n --output /nodir/n --account operator": "candor node token: --output: there is no directory /nodir",
		"bank export --output /nodir/n --account operator":  "candor bank export: --output: there is no directory /nodir",
		"submit nofile.yaml":                          "there is no file nofile.yaml",
		"market apply nofile.yaml --account operator": "candor market apply: there is no file or directory nofile.yaml",
		"jobs --account Bob":                          `--account "Bob": is not a name`,
		"jobs --server nats://x:1":                    "--site: missing: name the site that nats://x:1 serves: \"candor up\" prints the name when the site starts",
		"jobs --server y --site w":                    "--account: missing",
		"jobs --site a.b":                             `--site "a.b": is not a name`,
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
}

// The error must name the wrong flag as the user typed it, and say what to type instead.
func TestWrongFlags(t *testing.T) {
	s := newSite(t)
	for line, want := range map[string]string{
		"change 7":                 "say what to change: --budget, --rate, --name, --comment, --time, --max-running, --after or --after-nothing",
		"change 7 --time-limit 1h": "unknown flag: --time-limit: did you mean --time?",
		"withdraw alice 5":         "candor withdraw: missing: --reason\nSee: candor withdraw --help\n",
		"exec 7 ls -la":            "unknown shorthand flag: 'l' in -la: if the option is for the command to run, put -- before that command",
		"run ls -la":               "unknown shorthand flag: 'l' in -la: if the option is for the command to run, put -- before that command",
		"grant alice -5":           "unknown shorthand flag: '5' in -5: write numbers without a dash",
	} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	s := newSite(t)
	a := cli.New()
	walk(root(a, nil), func(c *cobra.Command) {
		if !c.Runnable() || c.Name() == "help" {
			return
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no short help or no example", c.CommandPath())
		}
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\n      ", " ")) { // joins an example's lines that end with a backslash
			if !strings.HasPrefix(line, "  ") || !strings.Contains(line, "candor ") {
				t.Errorf("%s: example %q", c.CommandPath(), line)
			}
		}
		line := append(strings.Fields(c.CommandPath())[1:], "--help")
		s.Run(line...).Expect(t, cli.CodeOK, "Usage:", "")
	})
	for _, topic := range []string{"exit-codes", "environment", "job-file"} {
		s.Run("help", topic).Expect(t, cli.CodeOK, "candor", "")
	}
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		walk(child, f)
	}
}

func TestCompletion(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	for line, want := range map[string]string{
		"job":              "104\tWaiting waits",
		"why":              "104\tWaiting waits",
		"logs":             "104\tWaiting waits",
		"cancel":           "104\tWaiting waits",
		"hold":             "104\tWaiting waits",
		"release":          "104\tWaiting waits",
		"change":           "104\tWaiting waits",
		"rerun":            "104\tWaiting waits",
		"requeue":          "104\tWaiting waits",
		"account":          "climate\t79.5 credits available",
		"statement":        "climate\t79.5 credits available",
		"grant":            "climate\t79.5 credits available",
		"jobs --owner":     "climate\t79.5 credits available",
		"submit --project": "climate\t79.5 credits available",
		"submit --market":  "night\tfifo",
		"submit --class":   "gpu\tof market night",
	} {
		args := append([]string{"__complete"}, strings.Fields(line)...)
		got := s.Run(append(args, "")...)
		got.Expect(t, cli.CodeOK, want, "")
		if strings.Contains(got.Out, "$site") {
			t.Errorf("%s: completes an account that is the bank's own: %s", line, got.Out)
		}
	}
}

// The exit code comes from the kind of the command's error, or from the error's method ExitCode.
func TestFurtherCommands(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{fmt.Errorf("plain"), 1, "candor extra: plain\n"},
		{messages.Errorf(messages.Insufficient, "no money"), 5, "candor extra: no money (Insufficient)\n"},
		{cli.ExitStatus(7), 7, ""},
	} {
		s := newSite(t)
		s.Tree = func(a *cli.App) *cobra.Command {
			return root(a, []Group{{"More:", []*cobra.Command{{Use: "extra", RunE: func(*cobra.Command, []string) error { return c.err }}}}})
		}
		if got := s.Run("extra"); got.Code != c.code || got.Err != c.text {
			t.Errorf("%v: got %+v", c.err, got)
		}
		s.Run("--help").Expect(t, 0, "More:\n  extra", "")
	}
}

type disorder struct{ error }

func (disorder) ExitCode() int { return cli.CodeFailed }

// The error of an interrupted command only reports the interrupt, so it must not be printed. An error with its own exit
// code must be printed.
func TestFurtherCommandsInterrupted(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, cli.CodeOK, ""},
		{fmt.Errorf("gave up"), cli.CodeInterrupted, ""},
		{disorder{fmt.Errorf("the lock is gone")}, cli.CodeFailed, "candor extra: the lock is gone\n"},
	} {
		s := newSite(t)
		ctx, interrupt := context.WithCancel(t.Context())
		s.Tree = func(a *cli.App) *cobra.Command {
			return root(a, []Group{{"More:", []*cobra.Command{{Use: "extra", RunE: func(*cobra.Command, []string) error { interrupt(); return c.err }}}}})
		}
		if got := s.RunIn(ctx, "extra"); got.Code != c.code || got.Err != c.text {
			t.Errorf("%v: got %+v", c.err, got)
		}
	}
}

func TestSchema(t *testing.T) {
	s := newSite(t)
	s.Run("schema").Expect(t, cli.CodeOK, "candor.SITE.auctioneer.submit.ACCOUNT", "")
	s.Run("schema", "--json").Expect(t, cli.CodeOK, `"subject":"candor.`, "")
	s.Run("schema", "JobSpec").Expect(t, cli.CodeOK, `"$schema": "https://json-schema.org/draft/2020-12/schema"`, "")
	s.Run("schema", "JobSpecs").Expect(t, cli.CodeNotFound, "", "did you mean JobSpec?")
}
