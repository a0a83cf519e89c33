package market

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func TestPaceRemindsMoreAndMoreRarely(t *testing.T) {
	var p pace
	now, sent := messages.Time(1), []messages.Time{}
	for range 3000 {
		if _, due := p.due(now, 1); due {
			sent = append(sent, now)
			p.sent(now, 1, 4, true)
		}
		now = now.Add(messages.Duration(time.Millisecond))
	}
	if len(sent) < 5 || len(sent) > 12 {
		t.Fatalf("%d reminders in 3 s, at %v", len(sent), sent)
	}
	if announce, due := p.due(now, 2); !announce || !due {
		t.Fatal("more work is announced at once")
	}
	p.sent(now, 2, 1_000_000, true)
	if _, due := p.due(now.Add(messages.Duration(time.Second)), 3); due {
		t.Fatal("a vector to a million nodes every second is all the site would do")
	}
}
