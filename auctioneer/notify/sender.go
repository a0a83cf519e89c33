package notify

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Sender sends notifications about jobs.
type Sender struct {
	rules    Rules
	site     messages.Name
	password string
	secret   Secret
	client   *http.Client
	clock    func() time.Time
}

// New returns the sender of a site. It reads the files that the rules name.
func New(site messages.Name, rules Rules) (*Sender, error) {
	if err := rules.Validate(); err != nil {
		return nil, err
	}
	s := &Sender{rules: rules, site: site, clock: time.Now}
	password, err := secretIn("password_file", rules.PasswordFile)
	if err != nil {
		return nil, err
	}
	if s.secret, err = ReadSecret(rules.SecretFile); err != nil {
		return nil, err
	}
	s.password, s.client = password, s.newClient()
	return s, nil
}

// ReadSecret reads the site's secret from a file. If the file's name is "", it returns an empty secret.
func ReadSecret(file string) (Secret, error) {
	secret, err := secretIn("secret_file", file)
	return Secret(secret), err
}

// secretIn reads a file that only its owner may read. It returns "" if path is "".
func secretIn(field, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "%s: %v", field, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", messages.Errorf(messages.PermissionDenied, "%s: others can read %s (mode %04o); set its mode to 600 with chmod, and write a new secret into the file", field, path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "%s: %v", field, err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", messages.Errorf(messages.Invalid, "%s: %s is empty", field, path)
	}
	return secret, nil
}

// Send tries once to send a notification. Errors of the kinds Invalid and PermissionDenied are final.
func (s *Sender) Send(ctx context.Context, n *book.Notice) error {
	if s == nil {
		return messages.Errorf(messages.PermissionDenied, "the site no longer sends notifications about jobs")
	}
	to := job.Notify{To: n.To}
	if err := s.rules.allows(&to); err != nil { // the rules may have changed after the job was accepted
		return err
	}
	w := &Word{ID: fmt.Sprintf("%s-%d-%d", s.site, n.Job.Job, n.ID), Site: s.site, Event: n.Event, At: n.At, JobSummary: n.Job}
	if to.Webhook() {
		return s.call(ctx, n.To, w)
	}
	return s.mail(ctx, n.To, w)
}
