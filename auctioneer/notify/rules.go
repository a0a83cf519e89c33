package notify

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Rules say which notifications about jobs a site sends, and how. The zero value sends none.
type Rules struct {
	// SMTP is the relay for e-mail, as host:port. If it is "", no e-mail is sent. The connection is encrypted if the
	// relay offers STARTTLS.
	SMTP string `json:"smtp,omitempty"`
	From string `json:"from,omitempty"` // the sender's address
	// User and PasswordFile authenticate the site at the relay. If User is "", the site does not authenticate.
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"` // the password of User
	// Domains lists the domains to which e-mail may be sent.
	Domains []string `json:"domains,omitempty"`
	// Hosts lists the hosts whose webhooks may be called, as host or host:port.
	Hosts []string `json:"hosts,omitempty"`
	// Networks lists private networks that the addresses of the hosts may belong to, such as 10.0.0.0/8.
	Networks []string `json:"networks,omitempty"`
	// SecretFile has the site's secret. The accounts' secrets, which sign webhooks, are derived
	// from it.
	SecretFile string `json:"secret_file,omitempty"`
}

// Validate returns joined errors for the rules that cannot work. Each message begins with the name of a rule.
func (r *Rules) Validate() error {
	var found []error
	bad := func(format string, args ...any) {
		found = append(found, messages.Errorf(messages.Invalid, format, args...))
	}
	if r.SMTP != "" {
		if _, port, err := net.SplitHostPort(r.SMTP); err != nil || port == "" {
			bad("smtp: %q is not the address of a mail relay, like mail.example.org:587", r.SMTP)
		}
		if n := (job.Notify{To: r.From}); r.From == "" || n.Webhook() || !strings.Contains(r.From, "@") || strings.ContainsAny(r.From, " \r\n<>") {
			bad("from: %q is not an address like candor@example.org, which e-mail needs", r.From)
		}
		if len(r.Domains) == 0 {
			bad("domains: is missing; list the domains that e-mail may be sent to")
		}
	}
	if r.SMTP == "" && (r.From != "" || r.User != "" || r.PasswordFile != "" || len(r.Domains) > 0) {
		bad("smtp: is missing; name the relay for e-mail")
	}
	if (r.User == "") != (r.PasswordFile == "") {
		bad("password_file: needs user, and user needs password_file; give both, or neither")
	}
	if (len(r.Hosts) > 0) != (r.SecretFile != "") {
		bad("secret_file: needs hosts, and hosts needs secret_file, whose secret signs the webhooks; give both, or neither")
	}
	for _, h := range r.Hosts {
		if h == "" || strings.ContainsAny(h, "/@*? ") {
			bad("hosts: %q is not a host, or host:port", h)
		}
	}
	for _, n := range r.Networks {
		if _, err := netip.ParsePrefix(n); err != nil {
			bad("networks: %q is not a network like 10.0.0.0/8", n)
		}
	}
	return errors.Join(found...)
}

// Check returns an error for a job that asks for notifications which the site does not send.
func (r *Rules) Check(list []job.Notify) error {
	for i := range list {
		if err := r.allows(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rules) allows(n *job.Notify) error {
	if n.Webhook() {
		_, err := r.webhook(n.To)
		return err
	}
	if r.SMTP == "" {
		return messages.Errorf(messages.Invalid, "notify: this site sends no e-mail about jobs; leave out the field notify, or ask the operator to allow e-mail")
	}
	_, domain, _ := strings.Cut(n.To, "@")
	if !slices.ContainsFunc(r.Domains, func(d string) bool { return strings.EqualFold(d, domain) }) {
		return messages.Errorf(messages.PermissionDenied, "notify: this site sends no e-mail to addresses at %s, only at %s", messages.Clip(domain, 64), strings.Join(r.Domains, ", "))
	}
	return nil
}

// webhook returns the URL of a webhook, or an error if the site may not call it.
func (r *Rules) webhook(to string) (*url.URL, error) {
	if len(r.Hosts) == 0 {
		return nil, messages.Errorf(messages.Invalid, "notify: this site calls no webhooks; leave out the field notify, or ask the operator to allow webhooks")
	}
	u, err := url.Parse(to)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "notify: %v", err)
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")) {
		return nil, messages.Errorf(messages.Invalid, "notify: %s: use https", messages.Clip(to, 64))
	}
	host := u.Host
	if u.Port() == "443" && u.Scheme == "https" {
		host = u.Hostname()
	}
	if !slices.ContainsFunc(r.Hosts, func(h string) bool { return strings.EqualFold(strings.TrimSuffix(h, ":443"), host) }) {
		return nil, messages.Errorf(messages.PermissionDenied, "notify: this site calls no webhooks at %s, only at %s", messages.Clip(host, 64), strings.Join(r.Hosts, ", "))
	}
	return u, nil
}

// reaches reports whether the site may connect to this address of a host.
func (r *Rules) reaches(host string, address netip.Addr) bool {
	address = address.Unmap()
	if address.IsGlobalUnicast() && !address.IsPrivate() && !shared.Contains(address) {
		return true
	}
	listed := slices.ContainsFunc(r.Hosts, func(h string) bool {
		if name, _, err := net.SplitHostPort(h); err == nil {
			h = name
		}
		return strings.EqualFold(strings.Trim(h, "[]"), host)
	})
	if at, err := netip.ParseAddr(host); listed && (err == nil && at.Unmap() == address || host == "localhost" && address.IsLoopback()) {
		return true // the configuration lists the address itself
	}
	return slices.ContainsFunc(r.Networks, func(n string) bool {
		p, err := netip.ParsePrefix(n)
		return err == nil && p.Contains(address)
	})
}

// shared is the address range that providers use inside their networks (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")
