package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// This SQL does the work of the bank's ledger: it inserts a transfer with a unique identifier, and updates both
// balances. Rows are always locked in the same order, so there are no deadlocks.
const (
	schemaSQL = `CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
INSERT INTO accounts SELECT i, 1000000000000 FROM generate_series(1, 1000) i;
CREATE TABLE transfers (id uuid PRIMARY KEY, debit int NOT NULL REFERENCES accounts, credit int NOT NULL REFERENCES accounts,
  amount bigint NOT NULL CHECK (amount > 0), reason text, at timestamptz NOT NULL DEFAULT now());
`
	transferSQL = `\set a random(1, 999)
\set b random(:a + 1, 1000)
BEGIN;
INSERT INTO transfers (id, debit, credit, amount, reason) VALUES (gen_random_uuid(), :a, :b, 1, 'bench');
UPDATE accounts SET balance = balance - 1 WHERE id = :a;
UPDATE accounts SET balance = balance + 1 WHERE id = :b;
END;
`
)

// cluster is a PostgreSQL server in a temporary directory, with the default settings and durable commits.
type cluster struct {
	dir string
	as  *syscall.SysProcAttr // attributes to run the server as another user, because PostgreSQL refuses to run as root
}

// postgres returns the transactions per second of 64 clients of pgbench, or nil without PostgreSQL.
func postgres(ctx context.Context, span time.Duration) (*float64, error) {
	for _, name := range []string{"initdb", "pg_ctl", "psql", "pgbench"} {
		if program(name) == "" {
			return nil, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, span+time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "candor-bench-pg-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := &cluster{dir: dir}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, "initdb", "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "bench"); err != nil {
		return nil, err
	}
	options := fmt.Sprintf("-k %s -c listen_addresses='' -c max_connections=100", dir)
	if _, err := c.run(ctx, "pg_ctl", "start", "-w", "-s", "-D", filepath.Join(dir, "data"), "-l", filepath.Join(dir, "log"), "-o", options); err != nil {
		return nil, err
	}
	rate, err := c.measure(ctx, span)
	// If the context of the measurement has ended, the server must still be stopped. So the stop has a context of its
	// own.
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	_, stopped := c.run(ending, "pg_ctl", "stop", "-s", "-m", "immediate", "-D", filepath.Join(dir, "data"))
	return &rate, errors.Join(err, stopped)
}

// program returns the path of a program of PostgreSQL, or "". Debian has the server's programs outside of PATH.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return found[len(found)-1]
}

// prepare writes the scripts, and chooses the server's user if this process runs as root.
func (c *cluster) prepare() error {
	for name, text := range map[string]string{"schema.sql": schemaSQL, "transfer.sql": transferSQL} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return err
	}
	c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(c.dir, uid, gid)
}

func (c *cluster) run(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program(name), args...)
	command.Dir, command.SysProcAttr = c.dir, c.as
	command.WaitDelay = time.Second // the server that pg_ctl starts keeps pg_ctl's output open
	out, err := command.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return string(out), nil
}

var tps = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`tps = ([0-9.]+)`) })

func (c *cluster) measure(ctx context.Context, span time.Duration) (float64, error) {
	if _, err := c.run(ctx, "psql", "-h", c.dir, "-U", "bench", "-q", "-v", "ON_ERROR_STOP=1", "-f", "schema.sql", "postgres"); err != nil {
		return 0, err
	}
	seconds := max(1, int(span.Seconds()))
	out, err := c.run(ctx, "pgbench", "-h", c.dir, "-U", "bench", "-n", "-M", "prepared", "-f", "transfer.sql",
		"-c", strconv.Itoa(singleClients), "-j", "2", "-T", strconv.Itoa(seconds), "postgres")
	if err != nil {
		return 0, err
	}
	found := tps().FindStringSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("pgbench does not say how many transactions a second: %s", out)
	}
	return strconv.ParseFloat(found[1], 64)
}
