package auctioneer

import (
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// published is a payload and where it goes.
type published struct {
	subject string
	what    any
}

func (l *leader) publish(p published) {
	data, err := messages.Marshal(p.what, messages.Msgpack)
	if err == nil {
		err = l.Bus.Publish(p.subject, data)
	}
	if err != nil {
		l.Log.Warn("cannot publish", zap.String("subject", p.subject), zap.Error(err))
		return
	}
	if _, ok := p.what.(messages.Vector); ok {
		l.metrics.vectors.Inc()
		l.metrics.vectorBytes.Add(float64(len(data)))
	}
}
