package docs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// unwalked has the commands of the pages that the test does not run. The key is the first words of the command, and the
// value is the reason why the test does not run it.
var unwalked = map[string]string{
	"make build": "the test builds the same program",
	"make run":   "a test of the command demo starts the same site",
	"make test":  "the walk is a part of this command",
}

// TestPages runs every command of every page, in order, with the unchanged binary. A reader may begin at any page, so
// each page has separate directories and sites.
func TestPages(t *testing.T) {
	bin := build(t)
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("pages: %v (%v)", pages, err)
	}
	var all strings.Builder
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := shell.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			continue
		}
		all.Write(text)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			r := arrive(t, bin)
			if !strings.Contains(blocks[0][1], "candor up") && !strings.Contains(blocks[0][1], "make ") {
				r.serve("candor up")
			}
			for _, block := range blocks {
				r.read(block[1])
			}
		})
	}
	for words := range unwalked {
		if !strings.Contains(all.String(), "\n"+words) {
			t.Errorf("no page has %q", words)
		}
	}
}

func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "candor"), "./cmd/candor")
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(test, filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	return dir
}

type reader struct {
	*testing.T
	dir    string
	env    []string
	here   *strings.Replacer // replaces names of the reader's machine on the page
	server string            // URL of the last site that was started
}

// arrive makes the directories of a reader: a home, and a working directory with the log that the pages call
// LOG.swf.gz.
func arrive(t *testing.T, bin string) *reader {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	west, east := newHub(t), newHub(t)
	r := &reader{T: t, dir: dir, here: strings.NewReplacer(
		"/var/lib/candor", filepath.Join(home, "var"),
		"site init west --listen 0.0.0.0:4222", fmt.Sprintf("site init west --listen %s:%d", west.host, west.port),
		"site init east", fmt.Sprintf("site init east --listen %s:%d", east.host, east.port),
		"hub.west.example:7422", fmt.Sprintf("%s:%d", west.host, west.port+leaf),
		"hub.west.example", west.host,
		"--console 127.0.0.1:8470", "--console 127.0.0.1:0",
	)}
	// This reader carries out the commands of the manual. The reader's tasks write into the reader's directory, so they
	// run as the user of this process.
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "XDG_STATE_HOME=", "NO_COLOR=1",
		"CANDOR_TASKS_AS_ME=true")
	if err := os.Symlink(bin, filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	z := gzip.NewWriter(&log)
	fmt.Fprint(z, "; MaxProcs: 2\n; UnixStartTime: 1000000000\n")
	for i := range 10 {
		fmt.Fprintf(z, "%d %d -1 %d 1 -1 -1 -1 90 -1 1 %d 1 -1 1 -1 -1 -1\n", i+1, 10*i, 30+i, i%3)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LOG.swf.gz"), log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// read runs the commands of a block in one shell. It starts sites separately.
func (r *reader) read(block string) {
	r.Helper()
	if strings.HasPrefix(block, "#!") {
		return // this block is a script of a user; the tests of job files read it
	}
	var script strings.Builder
	for line := range strings.Lines(block) {
		switch {
		case skipped(line):
		case strings.HasPrefix(line, "candor up"), strings.HasPrefix(line, "bin/candor up"):
			r.run(script.String())
			script.Reset()
			r.serve(line)
		default:
			script.WriteString(line)
		}
	}
	r.run(script.String())
}

func skipped(line string) bool {
	for words := range unwalked {
		if strings.HasPrefix(line, words) {
			return true
		}
	}
	return false
}

func (r *reader) run(script string) {
	r.Helper()
	if script == "" {
		return
	}
	script = r.here.Replace(script)
	command := exec.CommandContext(r.Context(), "sh", "-e", "-c", script)
	command.Dir, command.Env = r.dir, append(r.env, "CANDOR_SERVER_OF_PAGE="+r.server)
	out, err := command.CombinedOutput()
	if err != nil {
		r.Errorf("%s\n%v\n%s", script, err, out)
	}
	r.Logf("%s\n%s", script, out)
}

var address = regexp.MustCompile(`(?m)^ .*(nats://\S+|tls://\S+)`)

// serve runs a command line of the documentation that starts sites. It runs the command line in the background, and
// returns when the sites are up. If the line names no configuration, the site listens at a free port.
func (r *reader) serve(line string) {
	r.Helper()
	line, _, _ = strings.Cut(r.here.Replace(strings.TrimSpace(line)), "#")
	var said out
	command := exec.Command("sh", "-c", "exec "+line)
	command.Dir, command.Env = r.dir, r.env
	if !strings.Contains(line, "/site.yaml") {
		command.Env = append(command.Env, "CANDOR_LISTEN=127.0.0.1:0")
	}
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // the exit code of the site does not matter
		close(ended)
	}()
	r.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // an error does not matter: the site may have ended before
		<-ended
	})
	await.Until(r, line, func() bool {
		select {
		case <-ended:
			r.Fatalf("%s ended:\n%s", line, said.String())
		default:
		}
		return strings.Contains(said.String(), "Stop with Ctrl-C")
	})
	if found := address.FindStringSubmatch(said.String()); found != nil && r.server == "" {
		r.server = found[1]
	}
}

// leaf is the difference between the port for other sites' servers and the port for clients.
const leaf = 3200

// hub is the place where a site of the test listens: a loopback address that only this site uses, and its port. So no
// other connection or site can use the ports of this address.
type hub struct {
	host string
	port int // port for clients; the port for other sites' servers must also be free
}

var hubs atomic.Int32

func newHub(t *testing.T) hub {
	t.Helper()
	host := fmt.Sprint("127.0.80.", hubs.Add(1))
	for range 100 {
		clients, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		port := clients.Addr().(*net.TCPAddr).Port
		peers, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port+leaf))
		_ = clients.Close()
		if err == nil {
			_ = peers.Close()
			return hub{host, port}
		}
	}
	t.Fatal("no two ports are free")
	return hub{}
}
