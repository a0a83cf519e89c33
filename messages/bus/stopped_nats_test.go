package bus

import (
	"context"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// A service is stopped while its connection is lost, for example because another leader took over. When the connection
// is there again, the server must send no request to the stopped service, because nobody would answer it.
func TestAStoppedServiceGetsNoRequestsAfterReconnecting(t *testing.T) {
	s, restart := restartable(t)
	connect := natsGrid(s, false)
	before, after, user := connect(t, "$auctioneer"), connect(t, "$auctioneer"), connect(t, "alice")
	service := one("v.*", Handle("v", func(context.Context, messages.Name, messages.Empty) (r messages.Empty, err error) { return }))
	service.Name, service.Version = "test", "1.0.0"
	stopped, err := before.Serve(service)
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	await.Until(t, "the connection is lost", func() bool { return !before.(*natsBus).Connected() })
	if err := stopped.Stop(); err != nil {
		t.Error(err)
	}
	restart()
	for _, b := range []Bus{before, after, user} {
		await.Until(t, "the connection is there again", b.(*natsBus).Connected)
	}
	serve(t, after, service)
	await.Until(t, "20 requests in turn are answered", func() bool {
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := user.Request(ctx, "v.alice", nil)
			cancel()
			if err != nil {
				return false
			}
		}
		return true
	})
}
