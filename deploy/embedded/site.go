package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// Options are settings of a site that come from the program, not from its configuration.
type Options struct {
	// Host is this process's name in Config.Hosts. It is empty if there are no Hosts.
	Host messages.Name
	// Fresh removes what an earlier site left in the state directory.
	Fresh bool
	// Metrics makes the actors keep metrics; [Site.Gatherer] collects them.
	Metrics bool
	// Log is the logger of all actors. If it is nil, nothing is logged.
	Log *zap.Logger
	// Runner returns the runner for the tasks of a node. If Runner is nil, tasks are real processes. The caller must
	// close the runners.
	Runner func(node messages.Name) (runner.Runner, error)
	// Executor is the command that starts a node's executor. Tasks then outlive this process, and the next process
	// finds them again. If it is empty, tasks are children of this process.
	Executor []string
	// LeaveRunning lets tasks run on when the site is closed. It needs an Executor.
	LeaveRunning bool
	// Wall is the clock of this host. The default is the machine's clock.
	Wall func() messages.Time
	// Changed returns the configuration if its file has changed. Otherwise it returns nil, nil. A running site uses
	// only the new peers of the changed configuration. If Changed is nil, the file never changes.
	Changed func() (*Config, error)
	// usersFile is the file with the system users of accounts. The default is a file in the state directory.
	usersFile string
	// snapshotBytes is the size in bytes to which a log grows before a snapshot is written. 0 means the default size.
	snapshotBytes uint64
	// Only starts a single actor, with a server that runs elsewhere. If it is nil, everything of this process starts.
	Only *Only
}

// A value of the type Only names the single actor to start. If the configuration has hosts, only the actor's replica on
// Options.Host is started. Otherwise all replicas of the actor are started.
type Only struct {
	Actor  string        // messages.Auctioneer, Bank, Estimator or NodeAgent
	Node   messages.Name // for NodeAgent: only this node; empty: all nodes of this process
	Server string        // URL of the NATS server
	Creds  string        // credentials file of the actor
	// Certificate is the file with a replica's certificate. It is needed for hosts without the site's keys; see
	// [certificate.Internal.WriteReplica].
	Certificate string
}

// Site is a running site, or the part of it that is on one host.
type Site struct {
	*share
	operator    *operator
	auctioneers *group
	banks       *group
	services    []*service
	nodes       *nodes
	backups     *net.UnixListener // nil: the site gives out no backups

	closing sync.Once
	closed  error // result of the first Close
}

// share has what the actors of a site in this process use together: the configuration, the state directory with the
// keys, and a server. It does not have the actors themselves.
type share struct {
	config    Config
	options   Options
	host      *Host // this host; nil without Hosts
	log       *zap.Logger
	metrics   *metrics
	lock      *os.File // lock of the state directory; closing the file releases the lock
	authority *identity.Authority
	clock     *siteclock.Host
	server    *server.Server
	info      Info
	tasks     runner.Config // settings for running tasks on nodes
	console   *consoleDoor  // nil: there is no console
	joined    joined        // peers that were added since the start

	// ctx ends when the actors must end.
	ctx    context.Context
	cancel context.CancelFunc
	// watchers end with ctx. Closing the site waits for them, because they use the state directory.
	watchers sync.WaitGroup
	// patience is a context that ends with ctx. It also ends when the start of a part of the site has failed.
	patience context.Context
	giveUp   context.CancelFunc
}

// service is a running part of a site and the part's connection to NATS.
type service struct {
	part io.Closer
	bus  bus.Bus
}

// serving starts a service with a separate connection, as the actor with this name.
func (s *share) serving(actor string, start func(bus.Bus) (io.Closer, error)) (*service, error) {
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(actor))
	if err != nil {
		return nil, err
	}
	part, err := start(b)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &service{part, b}, nil
}

// Start starts a site and returns when it can be used: both groups have a leader, the accounts are open, and the agents
// are registered. ctx limits only the start. After an error, nothing is left running. If ctx is cancelled, Start
// returns ctx's error, unless closing the started parts fails.
func Start(ctx context.Context, c Config, o Options) (*Site, error) {
	if err := c.Validate(); err != nil {
		return nil, messages.Errorf(messages.Invalid, "configuration: %v", err)
	}
	s, err := newSite(c, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.startActors(ctx); err != nil {
		return nil, unstarted(ctx, err, s.Close())
	}
	return s, nil
}

// A start has failed, and the parts that had started were closed. unstarted returns the error of the start. If the
// start was cancelled, it returns the error of closing if there is one, and otherwise ctx's error.
func unstarted(ctx context.Context, err, closing error) error {
	switch {
	case !errors.Is(ctx.Err(), context.Canceled):
		return errors.Join(err, closing)
	case closing != nil:
		return closing
	}
	return ctx.Err()
}

func newSite(c Config, o Options) (*Site, error) {
	s := &share{config: c, options: o, log: o.Log, host: c.host(o.Host)}
	if s.log == nil {
		s.log = mailbox.QuietLog()
	}
	if len(c.Hosts) > 0 && s.host == nil {
		return nil, messages.Errorf(messages.Invalid, "host %q: is not among the configured hosts; name the host of this process with --host", o.Host)
	}
	if len(c.Hosts) == 0 && o.Host != "" {
		return nil, messages.Errorf(messages.Invalid, "host %q: the configuration has no hosts: name a configuration that has them with --config, or leave --host out", o.Host)
	}
	if s.host != nil {
		s.config.TLS = c.TLS.of(s.host.Name)
	}
	s.metrics = newMetrics(o.Metrics)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.patience, s.giveUp = context.WithCancel(s.ctx)
	s.openClock()
	return &Site{share: s, operator: &operator{share: s}}, nil
}

// open locks the state directory and starts the server. It starts no auctioneer, bank, estimator or agent.
func (s *Site) open() error {
	if err := s.prepare(); err != nil || s.options.Only != nil {
		return err
	}
	return s.listen()
}

// prepare locks the state directory, and reads or makes the site's keys and credentials.
func (s *share) prepare() (err error) {
	s.info = Info{Site: s.config.Site, DefaultAccount: s.config.defaultAccount()}
	if slices.ContainsFunc(s.config.Peers, func(p Peer) bool { return p.SameOwner }) {
		s.info.JobSite = clearing.AnySite
	}
	if err := s.contain(); err != nil {
		return err
	}
	if s.options.Only != nil {
		s.info.Server = s.options.Only.Server
		if err := s.keepFormatAlone(); err != nil {
			return err
		}
		s.keepClock()
		return s.openBankKeys() // replicas and agents lock their own directories
	}
	if s.lock, err = lockState(s.config.State); err != nil {
		return err
	}
	if s.options.Fresh {
		if err := erase(s.config.State); err != nil {
			return err
		}
	}
	if !isState(s.config.State) {
		defer func() {
			if err != nil { // the directory belongs to another program or site
				removeMarks(s.config.State)
			}
		}()
	}
	if err := keepFormat(s.config.State); err != nil {
		return err
	}
	if err := keepShape(&s.config); err != nil {
		return err
	}
	if s.authority, err = identity.OpenOrCreate(s.config.KeysDir(), s.config.Site); err != nil {
		return err
	}
	s.authority.SetLife(s.config.CredentialsFor.Std())
	if err := writeCredentials(&s.config, s.authority); err != nil {
		return err
	}
	s.keepClock()
	return nil
}

// keepFormatAlone makes the state directory if it is missing, and then calls keepFormat. It is for an actor that runs
// alone, and may be the first that uses this directory.
func (s *share) keepFormatAlone() error {
	if err := os.MkdirAll(s.config.State, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return keepFormat(s.config.State)
}

// openBankKeys reads the site's keys, if they are on this host, for a bank that runs alone. Without them the bank
// cannot identify callers.
func (s *share) openBankKeys() (err error) {
	if s.options.Only.Actor != messages.Bank {
		return nil
	}
	s.authority, err = identity.Open(s.config.KeysDir())
	if errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the bank runs without the site's keys: the bank cannot check who asks, and cannot settle with other sites", zap.String("keys", s.config.KeysDir()))
		return nil
	}
	return err
}

func (s *share) listen() error {
	o, err := serverOptions(&s.config, s.host, s.authority)
	if err != nil {
		return err
	}
	if err := s.openConsole(o); err != nil {
		return err
	}
	if s.server, err = startServer(o, s.log, s.metrics.shared); err != nil {
		return err
	}
	if err := s.serveConsole(o); err != nil {
		return err
	}
	s.watchCertificate(o.TLSConfig, "this host", "candor site certify, or with the authority of your own that signed it")
	s.watchers.Go(func() { s.watchKeys(o) })
	s.watchers.Go(func() { keepJetStream(s.ctx, s.server, o, s.log) })
	s.watchers.Go(func() { refuseStrangers(s.ctx, o, mostAtDoor(), s.log) })
	s.info.Server = localURL(s.server.ClientURL())
	if o.LeafNode.Port != 0 {
		s.info.Leaf = net.JoinHostPort(o.LeafNode.Host, strconv.Itoa(o.LeafNode.Port))
	}
	if t := s.config.TLS; t != nil {
		s.info.CA = t.CA
	}
	return nil
}

// localURL returns the URL with which this machine reaches a server. For a server at all addresses, it is the loopback
// address, which is in the certificates.
func localURL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	switch ip := net.ParseIP(u.Hostname()); {
	case ip == nil || !ip.IsUnspecified():
	case ip.To4() != nil:
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	default:
		u.Host = net.JoinHostPort("::1", u.Port())
	}
	return u.String()
}

// startActors starts the actors of this process and waits until they serve. It starts the agents last. By then the
// auctioneer has a leader, so the agents do not have to repeat their first requests.
func (s *Site) startActors(ctx context.Context) error {
	started := context.AfterFunc(ctx, s.giveUp)
	defer started()
	var err error
	s.auctioneers, s.banks = newGroup(s.share, auctioneerKind), newGroup(s.share, bankKind)
	if s.nodes, err = newNodes(s.share); err != nil {
		return err
	}
	if s.options.Only != nil {
		return s.startOnly()
	}
	if err := s.openStream(ctx); err != nil {
		return err
	}
	starts := append(s.starting(startEstimator, startDepot, startAdmission, startConnections, startLinks), s.auctioneers.startAll, s.banks.startAll)
	if err := together(starts); err != nil {
		return err
	}
	if err := together([]func() error{
		func() error { return s.operator.open(ctx) },
		func() error { // wait until a replica leads and serves
			_, err := ask[messages.StatusReply](ctx, s.operator, messages.Auctioneer, messages.VerbStatus, messages.Empty{})
			return err
		},
	}); err != nil {
		return err
	}
	if err := s.nodes.startAll(); err != nil {
		return err
	}
	if err := s.nodes.ready(ctx); err != nil {
		return err
	}
	if err := s.serveBackups(); err != nil {
		return err
	}
	if err := replaceJSON(filepath.Join(s.config.State, runningFile), &s.config); err != nil {
		return err
	}
	return writeInfo(s.config.State, s.info)
}

func (s *Site) starting(starts ...func(*share) (*service, error)) (all []func() error) {
	s.services = make([]*service, len(starts))
	for i, start := range starts {
		all = append(all, func() (err error) {
			s.services[i], err = start(s.share)
			return err
		})
	}
	return all
}

// streamSoon is the longest time until the server can make streams.
const streamSoon = 3 * time.Second

// openStream makes the stream of observations, which leads from the auctioneer to the estimator. Only the site makes
// this stream. If the auctioneer and the estimator both made it at the same time, the NATS server could have a stream
// without its directory on the disk.
func (s *Site) openStream(ctx context.Context) error {
	if s.host != nil {
		return nil
	}
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Auctioneer))
	if err != nil {
		return err
	}
	// The server accepts connections a little earlier than it can make streams. So the request for the stream is
	// repeated.
	late := time.Now().Add(streamSoon)
	err = again(ctx, 20*time.Millisecond, func() (bool, error) {
		_, err := b.Stream(ctx, messages.ObservationStream(s.config.Site), []string{messages.ObservationSubject(s.config.Site)})
		if err != nil && time.Now().After(late) {
			late = time.Now().Add(time.Minute)
			s.log.Warn("the start of the site waits until the server can store the streams of the site: is the disk full?", zap.String("directory", s.config.State), zap.Error(err))
		}
		return messages.KindOf(err) == messages.Unavailable, err
	})
	return errors.Join(err, b.Close())
}

// This function calls the function `try` once in each interval `every`, until `try` returns false or ctx ends.
func again(ctx context.Context, every time.Duration, try func() (more bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		more, err := try()
		if !more {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// startOnly starts one actor. It does not wait until the actor serves, because the parts that it needs may start
// later.
func (s *Site) startOnly() error {
	actor := s.options.Only.Actor
	if s.options.Only.Certificate != "" && s.host != nil {
		t, err := s.replicaTLS(actor)
		if err != nil {
			return err
		}
		s.watchCertificate(t, "this replica of the "+actor, "candor site certify "+s.host.Name+" --replica "+actor)
	}
	switch actor {
	case messages.Auctioneer: // the depot needs the auctioneer
		return together(append(s.starting(startDepot), s.auctioneers.startAll))
	case messages.Bank:
		if s.authority == nil {
			return s.banks.startAll()
		}
		return together(append(s.starting(startConnections), s.banks.startAll))
	case messages.Estimator:
		return together(s.starting(startEstimator))
	case messages.NodeAgent:
		return s.nodes.startAll()
	default:
		return messages.Errorf(messages.Invalid, "actor %q: is unknown", actor)
	}
}

// This function runs functions at the same time and joins their errors.
func together(functions []func() error) error {
	return Each(functions, func(f func() error) error { return f() })
}

// Each calls the function `do` for all elements at the same time, and joins the errors.
func Each[T any](all []T, do func(T) error) error {
	failed := make([]error, len(all))
	var busy sync.WaitGroup
	for i, one := range all {
		busy.Go(func() { failed[i] = do(one) })
	}
	busy.Wait()
	return errors.Join(failed...)
}

// Close stops the site gracefully, and keeps everything that was acknowledged. First the agents stop their tasks, then
// the replicas stop, then the server. A second call does nothing.
func (s *Site) Close() error {
	s.closing.Do(func() { s.closed = s.stop() })
	return s.closed
}

func (s *Site) stop() error {
	var failed []error
	if s.backups != nil {
		failed = append(failed, s.backups.Close())
	}
	if s.nodes != nil {
		failed = append(failed, s.nodes.stopAll())
	}
	for _, v := range slices.Backward(s.services) {
		if v != nil {
			failed = append(failed, v.part.Close(), v.bus.Close())
		}
	}
	for _, g := range []*group{s.auctioneers, s.banks} {
		if g != nil {
			failed = append(failed, g.stopAll())
		}
	}
	failed = append(failed, s.operator.close())
	if s.console != nil {
		failed = append(failed, s.console.Close())
	}
	s.cancel()
	s.watchers.Wait()
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.lock != nil {
		// The lock is released explicitly, and not only by closing the file. A process of a task that is being started
		// may have inherited the open file, and would then keep the lock.
		failed = append(failed, unix.Flock(int(s.lock.Fd()), unix.LOCK_UN), s.lock.Close())
	}
	return errors.Join(failed...)
}

// Config returns the configuration of the running site.
func (s *share) Config() Config { return s.config }

// Nodes returns the nodes of the configuration. For a node of this process, the result has the resources and slots of
// the machine. For any other node, it has what the configuration says.
func (s *Site) Nodes() []Node {
	all := slices.Clone(s.config.Nodes)
	for i := range all {
		if at := slices.IndexFunc(s.nodes.here, func(n Node) bool { return n.Name == all[i].Name }); at >= 0 {
			all[i] = s.nodes.here[at]
		}
	}
	return all
}

// URL returns the address of the site's NATS server for clients.
func (s *share) URL() string { return s.info.Server }

// Info returns the facts that the site gives to the command line.
func (s *share) Info() Info { return s.info }

// CredsFile returns the credentials file of a configured account or operator.
func (s *share) CredsFile(account messages.Name) string { return CredsFile(s.config.State, account) }
