package docs

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

type out struct {
	sync.Mutex
	strings.Builder
}

func (o *out) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.Builder.Write(p)
}

func (o *out) String() string {
	o.Lock()
	defer o.Unlock()
	return o.Builder.String()
}

// If the test binary was started under the name nats, TestMain carries out the command nats. This command needs no code
// of Candor.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "nats" {
		os.Exit(m.Run())
	}
	if err := natsCommand(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

// natsCommand plays the command nats of the NATS project for the pages of the documentation. The real "nats context
// save" stores a connection in nats' own files. natsCommand stores it in the file .context in the home directory.
func natsCommand(args []string) error {
	set := flag.NewFlagSet("nats", flag.ContinueOnError)
	server, creds, inbox := set.String("server", "", ""), set.String("creds", "", ""), set.String("inbox-prefix", "", "")
	set.Bool("select", false, "")
	saved := filepath.Join(os.Getenv("HOME"), ".context")
	words := args[:min(2, len(args))]
	if strings.Join(words, " ") == "context save" {
		return os.WriteFile(saved, []byte(strings.Join(args[3:], "\n")), 0o600)
	}
	for _, list := range [][]string{read(saved), args[2:]} {
		if len(list) == 1 { // the argument is the payload of a request
			continue
		}
		if err := set.Parse(list); err != nil {
			return err
		}
	}
	if want := "nats://127.0.0.1:4222"; *server != want {
		return fmt.Errorf("the page has the server %q, and candor up listens at %s", *server, want)
	}
	conn, err := nats.Connect(os.Getenv("CANDOR_SERVER_OF_PAGE"), nats.UserCredentials(*creds), nats.CustomInboxPrefix(*inbox))
	if err != nil {
		return err
	}
	defer conn.Close()
	switch {
	case words[0] == "request" && len(args) == 3:
		return request(conn, args[1], args[2])
	case strings.Join(words, " ") == "micro ls":
		return request(conn, "$SRV.INFO", "")
	}
	return fmt.Errorf("%q is not one of the commands that the pages have", args)
}

func read(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// request sends a request twice, and prints the reply. A submission with a key must make only one job.
func request(conn *nats.Conn, subject, payload string) error {
	var first string
	for range 2 {
		reply, err := conn.Request(subject, []byte(payload), 10*time.Second)
		if err != nil {
			return err
		}
		if why := reply.Header.Get(micro.ErrorHeader); why != "" {
			return errors.New(why)
		}
		if first != "" && strings.Contains(subject, ".submit.") && string(reply.Data) != first {
			return fmt.Errorf("the second answer is %s, the first %s", reply.Data, first)
		}
		first = string(reply.Data)
	}
	fmt.Println(first)
	return nil
}
