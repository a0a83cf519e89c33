package auctioneer

import (
	"context"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// disband gives back the tasks of gangs that do not come together in time.
func (l *leader) disband(ctx context.Context, now messages.Time) {
	l.mu.Lock()
	late := l.gangs.Late(now)
	l.mu.Unlock()
	for _, d := range late {
		go func() {
			_, err := l.propose(ctx, &book.Command{Disband: d})
			l.Log.Info("a gang did not come together in time", zap.Stringer("job", d.Job), zap.Error(err))
		}()
	}
}
