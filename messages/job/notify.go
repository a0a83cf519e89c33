package job

import (
	"net/url"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// These are limits on the notices of a job.
const (
	MaxNotify   = 4 // notifications of one job
	MaxNotifyTo = 512
)

// Notify asks for notifications about a job.
type Notify struct {
	// To is an e-mail address, or the URL of a webhook.
	To string   `json:"to"`
	On []string `json:"on,omitempty"` // values of NotifyEvents; the default is end
}

// These are the events of a job for which a notification can be sent.
const (
	NotifyStart   = "start"   // the job's first task began
	NotifyEnd     = "end"     // the job has ended, for any reason
	NotifyFailure = "failure" // the job has ended without completing, and was not cancelled
	NotifyBudget  = "budget"  // the job runs, and its budget is about to end
)

// NotifyEvents are the events of a job that a notification can be sent for.
var NotifyEvents = []string{NotifyStart, NotifyEnd, NotifyFailure, NotifyBudget}

// Webhook reports whether the notification goes to a webhook and not to an e-mail address.
func (n *Notify) Webhook() bool { return strings.Contains(n.To, "://") }

// Wants reports whether a notification about an event is asked for. If a failed job has asked for the events end and
// failure, it still sends only one notification.
func (n *Notify) Wants(event string) bool {
	if len(n.On) == 0 {
		return event == NotifyEnd
	}
	return slices.Contains(n.On, event)
}

// validateNotify checks a list of notifications. It does not know the rules of the site, so it cannot check whether the
// site sends these notifications.
func validateNotify(list []Notify) error {
	if len(list) > MaxNotify {
		return messages.Errorf(messages.TooLarge, "notify: %d is above the limit of %d", len(list), MaxNotify)
	}
	for i := range list {
		n := &list[i]
		if err := messages.CheckLine("notify", n.To, MaxNotifyTo); err != nil {
			return err
		}
		for _, event := range n.On {
			if !slices.Contains(NotifyEvents, event) {
				return messages.Errorf(messages.Invalid, "notify: %q is not one of %s", messages.Clipped(event), strings.Join(NotifyEvents, ", "))
			}
		}
		if len(n.On) > len(NotifyEvents) {
			return messages.Errorf(messages.Invalid, "notify: an event is given twice")
		}
		if n.Webhook() {
			if u, err := url.Parse(n.To); err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
				return messages.Errorf(messages.Invalid, "notify: %q is not a URL like https://host/path, without a user or a fragment", messages.Clipped(n.To))
			}
		} else if !MailAddress(n.To) {
			return messages.Errorf(messages.Invalid, "notify: %q is neither an e-mail address like ada@example.org nor a URL", messages.Clipped(n.To))
		}
	}
	return nil
}

// MailAddress reports whether s is an e-mail address in plain form.
func MailAddress(s string) bool {
	local, domain, found := strings.Cut(s, "@")
	if !found || local == "" || len(local) > 64 || domain == "" || len(domain) > 253 {
		return false
	}
	for _, c := range []byte(local) {
		if !alphanumeric(c) && strings.IndexByte(".!#$%&'*+/=?^_`{|}~-", c) < 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(domain, ".") {
		if part == "" || strings.Trim(part, "-") != part || strings.ContainsFunc(part, func(r rune) bool { return r > 'z' || !alphanumeric(byte(r)) && r != '-' }) {
			return false
		}
	}
	return local[0] != '-' && local[0] != '.'
}

func alphanumeric(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }

// NoticeStatus says whether a notification about a job was delivered.
type NoticeStatus struct {
	To      string        `json:"to"`
	Event   string        `json:"event"`
	At      messages.Time `json:"at"`                // time of the event
	Sent    messages.Time `json:"sent"`              // when the receiver accepted it; 0 means not yet, or never
	Refused string        `json:"refused,omitempty"` // why it will never be sent
}
