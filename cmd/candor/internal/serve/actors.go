package serve

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// single is a command that runs one actor against a NATS server that runs
// elsewhere.
type single struct {
	common
	actor, server, creds, node string
	certificate                string // of a replica
	leave                      bool   // of a node agent
	join                       joining
}

const singleHelp = `

Connects to the NATS server of --server with the credentials of --creds (see
candor user add). Markets, operators and nodes are those of the configuration;
if that has hosts, --host says which one this process is.`

const replicaHelp = `

Replicas of several hosts know one another by certificates, which each makes of the
site's keys where it has them. Where it has not, --certificate names one for this
replica (see candor site certify --replica).`

func auctioneerCommand() *cobra.Command {
	return (&single{actor: messages.Auctioneer}).replica("run a replica of the auctioneer alone",
		`Runs the auctioneer's replica of a host, or all its replicas if the configuration
has no hosts.`+singleHelp+replicaHelp,
		`  candor auctioneer --config site.yaml --host rack1 \
      --server nats://10.0.0.1:4222 --creds auctioneer.creds`)
}

func bankCommand() *cobra.Command {
	return (&single{actor: messages.Bank}).replica("run a replica of the bank alone",
		`Runs the bank's replica of a host, or all its replicas if the configuration has
no hosts.`+singleHelp+replicaHelp,
		`  candor bank --config site.yaml --host rack1 \
      --server nats://10.0.0.1:4222 --creds bank.creds`)
}

func estimatorCommand() *cobra.Command {
	return (&single{actor: messages.Estimator}).command("run an estimator alone",
		`Runs an estimator. Several may run: each learns the same.`+singleHelp,
		`  candor estimator --config site.yaml --server nats://10.0.0.1:4222 --creds estimator.creds`)
}

func nodeagentCommand() *cobra.Command {
	s := &single{actor: messages.NodeAgent}
	cmd := s.command("run the agent of a node alone",
		`Runs the agent of one node, which offers its slots and runs tasks on this
machine, as the user that starts it.`+singleHelp+`

With a token (see candor node token) the agent gets its credentials itself when it is
first started, into --creds or else the state directory, and finds the server.`,
		`  candor nodeagent --config site.yaml --node node7 --join-file node7.token
  candor nodeagent --config site.yaml --node node7 \
      --server nats://10.0.0.1:4222 --creds node7.creds`)
	s.join.flags(cmd.Flags())
	cmd.Flags().StringVar(&s.node, "node", "", "`name` of the configured node that this is")
	cmd.Flags().BoolVar(&s.leave, "leave-running", false, "leave the tasks to the next agent of the node when this one ends")
	_ = cmd.MarkFlagRequired("node")
	return cmd
}

// replica is the command of an actor that has replicas.
func (s *single) replica(short, long, example string) *cobra.Command {
	cmd := s.command(short, long, example)
	cmd.Flags().StringVar(&s.settings.keys, "keys", "", "`directory` of the site's keys (default keys in the state directory)")
	cmd.Flags().StringVar(&s.certificate, "certificate", "", "`file` with the certificate of this replica")
	return cmd
}

func (s *single) command(short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: s.actor, Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
		// Required flags are checked after this, so the environment counts.
		PreRunE: func(cmd *cobra.Command, _ []string) error { return prepare(cmd) },
	}
	s.settings.fileFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.settings.metrics, "metrics", "", "`address` that serves Prometheus metrics (default none)")
	cmd.Flags().BoolVar(&s.settings.profile, "profile", false, "serve pprof at a socket in the state directory")
	cmd.Flags().StringVar(&s.settings.store, "store", "", "how replicas keep their logs, `wal` or bolt (default wal)")
	s.logging.flags(cmd.Flags())
	cmd.Flags().StringVar(&s.server, "server", "", "`URL` of the NATS server, or several with commas")
	cmd.Flags().StringVar(&s.creds, "creds", "", "NATS credentials `file` of the actor")
	return cmd
}

func (s *single) run(cmd *cobra.Command) error {
	if !s.join.given() && (s.server == "" || s.creds == "") {
		return messages.Errorf(messages.Invalid, "--server and --creds: say where the NATS server is and who this is")
	}
	c, err := s.settings.load()
	if err != nil {
		return err
	}
	if s.join.given() {
		if err := s.join.obtain(cmd.Context(), s, c.State); err != nil {
			return err
		}
	}
	log, err := s.logger(cmd)
	if err != nil {
		return err
	}
	door, err := c.MetricsDoor(s.settings.host)
	if err != nil {
		return err
	}
	site, err := embedded.Start(cmd.Context(), c, embedded.Options{
		Host: s.settings.host, Metrics: door.Address != "", Log: log, Executor: executor.Self(), LeaveRunning: s.leave,
		Only: &embedded.Only{Actor: s.actor, Node: s.node, Server: s.server, Creds: s.creds, Certificate: s.certificate},
	})
	if err != nil {
		return unstarted(cmd.Context(), err)
	}
	stop, err := observe(door, profileSocket(&c, cmp.Or(s.node, s.actor)), site.Gatherer, log)
	if err != nil {
		return errors.Join(err, site.Close())
	}
	log.Info("serving")
	serving()
	<-cmd.Context().Done()
	leaving()
	log.Info("stopping")
	return ended(errors.Join(stop(), site.Close()))
}
