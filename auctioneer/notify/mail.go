package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

func (s *Sender) mail(ctx context.Context, to string, w *Word) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.rules.SMTP)
	if err != nil {
		return messages.Errorf(messages.Unavailable, "the mail relay cannot be reached: %v", err)
	}
	defer conn.Close()
	if until, bounded := ctx.Deadline(); bounded {
		_ = conn.SetDeadline(until)
	}
	if err := s.deliver(conn, to, w); err != nil {
		return messages.Errorf(replied(err), "the relay: %v", err)
	}
	return nil
}

func (s *Sender) deliver(conn net.Conn, to string, w *Word) error {
	host, _, _ := net.SplitHostPort(s.rules.SMTP)
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if offered, _ := c.Extension("STARTTLS"); offered {
		if err := c.StartTLS(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return err
		}
	}
	if s.rules.User != "" { // without encryption, the client returns an error here, except on loopback
		if err := c.Auth(smtp.PlainAuth("", s.rules.User, s.password, host)); err != nil {
			return err
		}
	}
	if err := c.Mail(s.rules.From); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	data, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(s.letter(to, w)); err != nil {
		return err
	}
	if err := data.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the relay has already accepted the message
	return nil
}

// letter returns the e-mail with headers and text. Texts from users are encoded.
func (s *Sender) letter(to string, w *Word) []byte {
	var b bytes.Buffer
	_, domain, _ := strings.Cut(s.rules.From, "@")
	for _, h := range [][2]string{
		{"From", s.rules.From}, {"To", to}, {"Subject", mime.QEncoding.Encode("utf-8", "[candor] "+w.title())},
		{"Date", s.clock().UTC().Format(time.RFC1123Z)}, {"Message-ID", "<" + w.ID + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	text := quotedprintable.NewWriter(&b)
	_, _ = text.Write([]byte(strings.ReplaceAll(w.text(), "\n", "\r\n")))
	_ = text.Close()
	return b.Bytes()
}

// replied returns the kind of an error from the mail relay. If the relay's answer has a code of 500 or more, the error
// is final: sending again would be useless.
func replied(err error) messages.Kind {
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 500 {
		return messages.PermissionDenied
	}
	return messages.Unavailable
}
