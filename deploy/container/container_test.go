package container

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/candor-grid/candor/deploy/embedded"
)

type compose struct {
	Services map[string]struct {
		Hostname string
		Command  []string
		Volumes  []string
		Profiles []string
		CapDrop  []string `yaml:"cap_drop"`
		CapAdd   []string `yaml:"cap_add"`
	}
	Volumes map[string]any
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func site(t *testing.T) embedded.Config {
	t.Helper()
	c := embedded.Default()
	c.State, c.Replicas, c.Listen = "/var/lib/candor", 0, ""
	if err := yaml.UnmarshalWithOptions(read(t, "site.yaml"), &c, yaml.Strict()); err != nil {
		t.Fatalf("site.yaml: %s", yaml.FormatError(err, false, true))
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("site.yaml: %v", err)
	}
	return c
}

// Each host of the configuration must be a service in compose.yaml that has the host's name. The host's state and the
// keys must be in volumes.
func TestComposeStartsTheSite(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal(read(t, "compose.yaml"), &c); err != nil {
		t.Fatalf("compose.yaml: %s", yaml.FormatError(err, false, true))
	}
	for _, h := range site(t).Hosts {
		s, ok := c.Services[h.Name]
		if !ok {
			t.Errorf("host %s is no service", h.Name)
			continue
		}
		want := "up --config /site.yaml --host " + h.Name + " --keys /etc/candor/keys --state /var/lib/candor"
		if got := strings.Join(s.Command, " "); got != want {
			t.Errorf("%s runs %q, want %q", h.Name, got, want)
		}
		for _, v := range []string{"./site.yaml:/site.yaml:ro", "keys:/etc/candor:ro", h.Name + ":/var/lib/candor"} {
			if !slices.Contains(s.Volumes, v) {
				t.Errorf("%s: has no volume %s", h.Name, v)
			}
		}
		if !strings.HasPrefix(h.Listen, s.Hostname+":") || len(s.Profiles) > 0 {
			t.Errorf("%s: is %q at %s, of the profiles %v", h.Name, s.Hostname, h.Listen, s.Profiles)
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.CapAdd, []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID"}) {
			t.Errorf("%s: has capabilities %v without %v", h.Name, s.CapAdd, s.CapDrop)
		}
		delete(c.Services, h.Name)
	}
	if s := c.Services["keys"]; len(c.Services) != 1 || !slices.Equal(s.Profiles, []string{"init"}) {
		t.Errorf("beside the hosts there are %v", c.Services)
	}
}

var instruction = regexp.MustCompile(`(?m)^([A-Z]+) (.*)`)

// The last stage of the Containerfile must run as the container's root, which can run tasks as other users. This stage
// must have a health check, and must expose the ports of the configuration.
func TestContainerfile(t *testing.T) {
	text := strings.ReplaceAll(string(read(t, "Containerfile")), "\\\n", " ")
	last := map[string]string{}
	for _, m := range instruction.FindAllStringSubmatch(text, -1) {
		if m[1] == "FROM" {
			clear(last)
		}
		last[m[1]] = m[2]
	}
	if user := last["USER"]; user != "" {
		t.Errorf("it runs as %q, and so do its tasks", user)
	}
	for _, name := range []string{"HEALTHCHECK", "ENTRYPOINT", "VOLUME"} {
		if last[name] == "" {
			t.Errorf("it has no %s", name)
		}
	}
	if !strings.Contains(text, "CGO_ENABLED=0") {
		t.Error("the binary needs libraries")
	}
	for _, h := range site(t).Hosts {
		for _, address := range []string{h.Listen, h.Cluster, h.Auctioneer, h.Bank, h.Metrics} {
			if _, port, _ := strings.Cut(address, ":"); !slices.Contains(strings.Fields(last["EXPOSE"]), port) {
				t.Errorf("port %s of host %s is not exposed", port, h.Name)
			}
		}
	}
}
