package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "candor", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// Flags must take precedence over the environment, the environment over the file, and the file over the defaults. The
// listen address shows which one was used.
func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:2000\nreplicas: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"CANDOR_LISTEN": "127.0.0.1:3000", "CANDOR_CONFIG": file}
	cases := []struct {
		variables map[string]string
		args      []string
		listen    string
		replicas  int
	}{
		{nil, nil, "127.0.0.1:4222", 3},
		{nil, []string{"--config", file}, "127.0.0.1:2000", 5},
		{variables, nil, "127.0.0.1:3000", 5},
		{variables, []string{"--listen", "127.0.0.1:4000"}, "127.0.0.1:4000", 5},
		{variables, []string{"--replicas", "1"}, "127.0.0.1:3000", 1},
	}
	for _, c := range cases {
		s := &settings{}
		f := pflag.NewFlagSet("up", pflag.ContinueOnError)
		s.siteFlags(f)
		if err := f.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := environment(f, func(name string) (string, bool) { v, ok := c.variables[name]; return v, ok }); err != nil {
			t.Fatal(err)
		}
		got, err := s.load()
		if err != nil {
			t.Fatal(err)
		}
		if got.Listen != c.listen || got.Replicas != c.replicas {
			t.Errorf("variables %v, flags %v: listen %s, %d replicas; want %s, %d", c.variables, c.args, got.Listen, got.Replicas, c.listen, c.replicas)
		}
	}
}

func TestEnvironmentNamesTheVariable(t *testing.T) {
	t.Setenv("CANDOR_NODES", "many")
	_, err := run(t, "config", "show")
	if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "CANDOR_NODES") {
		t.Fatalf("error %v, want an Invalid one that names CANDOR_NODES", err)
	}
}

// The output of config show must be a configuration file for the same site.
func TestShowIsAFile(t *testing.T) {
	first, err := run(t, "config", "show", "--config", "../../../../deploy/examples/site.yaml", "--nodes", "3")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := run(t, "config", "show", "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	if first != second || !strings.Contains(first, "node3") || strings.Contains(first, "node4") {
		t.Errorf("shown first:\n%s\nand from that:\n%s", first, second)
	}
	said, err := run(t, "config", "check", file)
	if err != nil || !strings.Contains(said, "nothing is wrong") {
		t.Errorf("config check: %q, %v", said, err)
	}
}

// A script named nvidia-smi shows two GPUs. A site must sell each with half of the machine. A site with a configuration
// file must sell only the GPUs that the file names. A site with several nodes must sell no GPU, because each node would
// sell the same GPUs.
func TestASiteWithoutAFileSellsTheGPUsThatItFinds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	sold := func(s settings) []job.ClassUnit {
		c, err := s.load()
		if err != nil {
			t.Fatal(err)
		}
		return c.Markets[0].Units
	}
	plain := sold(settings{})
	write("nvidia-smi", "#!/bin/sh\necho '0, GPU-a, NVIDIA L4, 23034 MiB'; echo '1, GPU-b, NVIDIA L4, 23034 MiB'\n")
	half := job.Resources{GPUs: 1, CPUs: max(len(machine.Processors())/2, 1), Memory: machine.Memory() / 2 >> 20 << 20}
	if want := append(slices.Clone(plain), job.ClassUnit{Class: "gpu", Unit: half}); len(plain) != 1 || !slices.Equal(sold(settings{}), want) {
		t.Errorf("sold are %+v, want %+v", sold(settings{}), want)
	}
	for _, s := range []settings{{nodes: 2}, {file: write("site.yaml", "listen: 127.0.0.1:2000\n")}} {
		if got := sold(s); !slices.Equal(got, plain) {
			t.Errorf("%+v: sold are %+v, want %+v", s, got, plain)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"--replicas", "4", "replicas: 4 is not possible"},
		{"--listen", "4222", `listen: "4222" is not an address`},
		{"--config", "/does/not/exist", "no such file"},
	} {
		_, err := run(t, "config", "show", c.flag, c.value)
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want an Invalid error with %q", c.flag, c.value, err, c.want)
		}
	}
}

// With --hosts, the command must refuse --listen, and not ignore it silently. In a configuration with hosts, candor
// config check must say that listen is not used.
func TestListenIsNotOfHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "west")
	refused(t, messages.Invalid, "with --hosts each host listens at its own address", "site", "init", "west", "--dir", dir, "--listen", "0.0.0.0:5000", "--hosts", "a=10.0.0.1,b=10.0.0.2,c=10.0.0.3")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a site was made")
	}
	file := filepath.Join(t.TempDir(), "site.yaml")
	text := `nodes: [{name: node1, slots: {map: 1, reduce: 1}}]
hosts: [{name: a, listen: "127.0.0.1:1", cluster: "127.0.0.1:2", auctioneer: "127.0.0.1:3", bank: "127.0.0.1:4", nodes: [node1]}]
`
	for listen, want := range map[string]bool{"": false, "listen: 127.0.0.1:5000\n": true} {
		if err := os.WriteFile(file, []byte(listen+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := must(t, "config", "check", file); strings.Contains(said, "listen is not used") != want {
			t.Errorf("%q: %s", listen, said)
		}
	}
}

// A file that the configuration names may be missing on the machine where it is checked. That is no mistake, but the
// command says so.
func TestCheckNamesMissingFiles(t *testing.T) {
	dir := t.TempDir()
	file, prolog, filter := filepath.Join(dir, "site.yaml"), filepath.Join(dir, "prolog"), filepath.Join(dir, "filter")
	text := "site: west\nsubmit_filter: " + filter + "\ntasks: {prolog: " + prolog + ", epilog: /bin/true}\ntls: {cert: \"" + dir + "/{host}.pem\", key: " + dir + "/x.key, ca: /bin/true}\n"
	for _, err := range []error{os.WriteFile(file, []byte(text), 0o600), os.WriteFile(prolog, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	said := must(t, "config", "check", file)
	want := "site.yaml: submit_filter: this machine has no file " + filter + "; each host with a replica of the auctioneer needs it\n" +
		file + ": tasks.prolog: " + prolog + " is not a program here: chmod +x makes a file a program\n" +
		file + ": tls.key: this machine has no file " + dir + "/x.key; each host needs it\n"
	if !strings.Contains(said, "nothing is wrong") || !strings.HasSuffix(said, want) {
		t.Errorf("it says\n%swant\n%s", said, want)
	}
}

// The configuration of one agent lists only the agent's nodes. It must be valid even if none of these nodes has a class
// that a market uses.
func TestAFileOfSomeNodesHasAllMarkets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.yaml")
	text := "site: west\nstate: /tmp/x\nmarkets:\n  - {name: cpu, mechanism: fifo, classes: [cpu]}\n  - {name: gpu, mechanism: fifo, classes: [gpu]}\n" +
		"nodes: [{name: node1, slots: {cpu: 2}}]\ntasks: {classes: {gpu: {memory_mib: 5}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := must(t, "config", "check", file); !strings.Contains(said, "nothing is wrong: site west, 2 markets, 1 node") {
		t.Error(said)
	}
}

// After a restore, the printed command that starts the site must have the flags for the site's keys and host.
func TestRestoreNamesTheFlagsThatWork(t *testing.T) {
	for _, c := range []struct{ host, keys, want string }{{"", "", ""}, {"", "/k", " --keys /k"}, {"rack1", "/k", " --config FILE --host rack1 --keys /k"}} {
		if got := restored(c.host, c.keys); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// 0 nodes or replicas must be refused, and must not mean the default number.
func TestNumbersBeginAtOne(t *testing.T) {
	for _, flag := range []string{"--nodes", "--replicas"} {
		for _, value := range []string{"0", "-1", "x"} {
			if _, err := run(t, "config", "show", flag, value); err == nil || !strings.Contains(err.Error(), "give a number from 1 on") {
				t.Errorf("%s %s: %v", flag, value, err)
			}
		}
	}
}

// The keys of a site can be created only once. An operator who has the keys can issue credentials. Credentials are for
// one name and one role.
func TestUserAdd(t *testing.T) {
	state := t.TempDir()
	_, err := run(t, "user", "add", "dave", "--state", state)
	if messages.KindOf(err) != messages.NotFound {
		t.Fatalf("without keys: %v, want NotFound", err)
	}
	if _, err := run(t, "site", "init", "--state", state); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "site", "init", "--state", state); messages.KindOf(err) != messages.Conflict {
		t.Errorf("keys made twice: %v, want Conflict", err)
	}
	for _, c := range []struct {
		args []string
		file string
	}{
		{[]string{"dave"}, "dave.creds"},
		{[]string{"root1", "--operator"}, "root1.creds"},
		{[]string{"auctioneer", "--service"}, "services/auctioneer.creds"},
		{[]string{"node1", "--node"}, "nodes/node1.creds"},
	} {
		said, err := run(t, append([]string{"user", "add", "--state", state}, c.args...)...)
		want := filepath.Join(state, "creds", c.file)
		if err != nil || strings.TrimSpace(said) != want {
			t.Errorf("user add %v: %q, %v; want %s", c.args, said, err, want)
		}
		info, err := os.Stat(want)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", want, info, err)
		}
	}
	if _, err := run(t, "user", "add", "No Name", "--state", state); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a name that is none: %v, want Invalid", err)
	}
}

func TestLogLevelAndFormat(t *testing.T) {
	var out bytes.Buffer
	log, err := (&logging{level: "warn", format: "auto"}).logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("not this")
	log.Warn("but this")
	if got := out.String(); !strings.HasPrefix(got, `{"level":"warn"`) || strings.Contains(got, "not this") {
		t.Errorf("logged %q, want one line of JSON at level warn", got)
	}
	for _, l := range []logging{{"loud", "auto"}, {"info", "xml"}, {"fatal", "auto"}} {
		if _, err := l.logger(&out); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v, want Invalid", l, err)
		}
	}
}

// TestSampleMarkets reads the markets in the comments of the sample configuration. They must all be valid.
func TestSampleMarkets(t *testing.T) {
	text, err := os.ReadFile("../../../../deploy/examples/site.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "# max_tasks (of a job).\n#\n")
	block, _, end := strings.Cut(block, "\n\n")
	if !ok || !end {
		t.Fatal("the sample has no markets as comments")
	}
	var markets, slots []string
	for line := range strings.Lines(block) {
		markets = append(markets, strings.TrimPrefix(line, "#"))
		if name, found := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line, "#")), "classes: ["); found {
			slots = append(slots, strings.TrimSuffix(name, "]")+": 1")
		}
	}
	whole := "markets:\n" + strings.Join(markets, "") + "\nnodes:\n  - {name: node1, slots: {" + strings.Join(slots, ", ") + "}}\n"
	c, err := check(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Markets) != 9 {
		t.Errorf("%d markets", len(c.Markets))
	}
}
