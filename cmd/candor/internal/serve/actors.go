package serve

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
)

// single is a command that runs one actor. The actor connects to a separate NATS server.
type single struct {
	common
	actor, server, creds, node string
	certificate                string // only for a replica
	leave                      bool   // only for a node agent
	join                       joining
}

const singleHelp = `

Connects to the NATS server of --server with the credentials of --creds (see
candor user add). The configuration names markets, operators and nodes. If the
configuration has hosts, --host names the host of this process.`

const replicaHelp = `

Replicas on several hosts know one another by certificates. A host that has the
site's keys makes the certificate of its replica itself. On other hosts,
--certificate names the file (see candor site certify --replica).`

func auctioneerCommand() *cobra.Command {
	return (&single{actor: messages.Auctioneer}).replica("run a replica of the auctioneer alone",
		`Runs the auctioneer's replica of a host, or all its replicas if the
configuration has no hosts.`+singleHelp+replicaHelp,
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
		`Runs an estimator. Several estimators may run: all learn the same.`+singleHelp,
		`  candor estimator --config site.yaml \
      --server nats://10.0.0.1:4222 --creds estimator.creds`)
}

func nodeagentCommand() *cobra.Command {
	s := &single{actor: messages.NodeAgent}
	cmd := s.command("run the agent of a node alone",
		`Runs the agent of one node. The agent offers the slots of the node, and runs
tasks on this machine as the user that starts the agent.`+singleHelp+`

With a token (see candor node token) the agent finds the server and gets its
credentials at its first start. The agent writes the credentials to the file of
--creds or to the state directory.`,
		`  candor nodeagent --config site.yaml --node node7 --join-file node7.token
  candor nodeagent --config site.yaml --node node7 \
      --server nats://10.0.0.1:4222 --creds node7.creds`)
	cmd.Annotations = map[string]string{dumps.StartsTasks: ""}
	s.join.flags(cmd.Flags())
	cmd.Flags().StringVar(&s.node, "node", "", "`name` of this node in the configuration")
	cmd.Flags().BoolVar(&s.leave, "leave-running", false, "when this agent ends, leave the tasks running for the next agent of the node")
	_ = cmd.MarkFlagRequired("node")
	return cmd
}

func (s *single) replica(short, long, example string) *cobra.Command {
	cmd := s.command(short, long, example)
	s.settings.keysFlag(cmd.Flags())
	cmd.Flags().StringVar(&s.certificate, "certificate", "", "`file` with the certificate of this replica")
	return cmd
}

func (s *single) command(short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: s.actor, Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
		// cobra checks required flags after this function, so a flag from the environment counts as set.
		PreRunE: func(cmd *cobra.Command, _ []string) error { return prepare(cmd) },
	}
	s.settings.fileFlags(cmd.Flags())
	s.settings.runFlags(cmd.Flags())
	s.logging.flags(cmd.Flags())
	cmd.Flags().StringVar(&s.server, "server", "", "`URL` of the NATS server, or several with commas")
	cmd.Flags().StringVar(&s.creds, "creds", "", "NATS credentials `file` of the actor")
	return cmd
}

func (s *single) run(cmd *cobra.Command) error {
	if !s.join.given() && (s.server == "" || s.creds == "") {
		return messages.Errorf(messages.Invalid, "--server and --creds: give the URL of the NATS server and a credentials file")
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
	o, door, err := s.options(cmd, &c)
	if err != nil {
		return err
	}
	o.LeaveRunning = s.leave
	o.Only = &embedded.Only{Actor: s.actor, Node: s.node, Server: s.server, Creds: s.creds, Certificate: s.certificate}
	site, err := embedded.Start(cmd.Context(), c, o)
	if err != nil {
		return unstarted(cmd.Context(), err)
	}
	return serve(cmd, served{
		Gather: site.Gatherer, Ready: site.Ready, Metrics: door, Profile: profileSocket(&c, cmp.Or(s.node, s.actor)), Close: site.Close,
		Announce: func(context.Context, io.Writer) { o.Log.Info("serving") },
		Stopping: func(io.Writer) { o.Log.Info("stopping") },
	}, o.Log)
}
