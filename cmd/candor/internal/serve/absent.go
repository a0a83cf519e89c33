package serve

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/candor-grid/candor/deploy/embedded"
)

// absent returns a sentence for each program and file that a configuration names and that this machine does not have.
// These are remarks and no mistakes, because the configuration may be checked on another machine than the one that
// needs the file.
func absent(c *embedded.Config) (remarks []string) {
	look := func(field, path, needs string, program bool) {
		if path == "" {
			return
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			remarks = append(remarks, fmt.Sprintf("%s: this machine has no file %s; %s needs it", field, path, needs))
		case program && (info.IsDir() || info.Mode().Perm()&0o111 == 0):
			remarks = append(remarks, fmt.Sprintf("%s: %s is not a program here: chmod +x makes a file a program", field, path))
		}
	}
	const replicas, nodes, hosts = "each host with a replica of the auctioneer", "each host with nodes", "each host"
	look("submit_filter", c.SubmitFilter, replicas, true)
	look("tasks.prolog", c.Tasks.Prolog, nodes, true)
	look("tasks.epilog", c.Tasks.Epilog, nodes, true)
	look("gpus.program", c.Devices.Program, nodes, true)
	look("gpus.health", c.Devices.Health, "each host with GPUs", true)
	look("metrics_token", c.MetricsToken, hosts, false)
	look("notify.secret_file", c.Notify.SecretFile, replicas, false)
	look("notify.password_file", c.Notify.PasswordFile, replicas, false)
	if c.SignOn != nil {
		look("sign_on.secret_file", c.SignOn.SecretFile, "each host with a console", false)
	}
	if c.TLS != nil {
		look("tls.ca", c.TLS.CA, hosts, false)
		name, _ := os.Hostname()
		here := slices.ContainsFunc(c.Hosts, func(h embedded.Host) bool { return h.Name == name })
		for field, path := range map[string]string{"tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key} {
			if named := strings.Contains(path, "{host}"); !named || here {
				look(field, strings.ReplaceAll(path, "{host}", name), hosts, false)
			}
		}
	}
	slices.Sort(remarks)
	return remarks
}
