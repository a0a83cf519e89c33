package bus

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/candor-grid/candor/messages"
)

var (
	announcedName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })
	announcedVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`) })
)

// announce answers the standard questions of NATS's micro framework (ping, info, stats) about a service. The
// framework's own code is not used: it would send an answer to any reply subject that a client names, with the
// permissions of the service.
func (s *natsService) announce(service Service) error {
	if !announcedName().MatchString(service.Name) || !announcedVersion().MatchString(service.Version) {
		return messages.Errorf(messages.Invalid, "service %s, version %q: needs a name of letters, digits, '-' and '_', and a version like 1.0.0", clip(service.Name), clip(service.Version))
	}
	self := micro.ServiceIdentity{Name: service.Name, ID: rand.Text(), Version: service.Version, Metadata: map[string]string{}}
	started := time.Now().UTC()
	for verb, answer := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: self, Type: micro.PingResponseType} },
		micro.InfoVerb:  func() any { return s.info(self, service.Description) },
		micro.StatsVerb: func() any { return s.stats(self, started) },
	} {
		for _, of := range [][2]string{{}, {self.Name}, {self.Name, self.ID}} {
			subject, err := micro.ControlSubject(verb, of[0], of[1])
			if err != nil {
				return messages.Errorf(messages.Internal, "service %s: %v", service.Name, err)
			}
			sub, err := s.bus.conn.Subscribe(subject, func(m *nats.Msg) { s.describe(m, answer()) })
			if err != nil {
				return sendError(subject, err)
			}
			s.subs = append(s.subs, sub)
		}
	}
	return nil
}

func (s *natsService) describe(m *nats.Msg, answer any) {
	if !isInbox(m.Reply) {
		s.bus.refuseReply(m)
		return
	}
	data, _ := json.Marshal(answer) // these types can always be encoded
	s.bus.reply(m.Subject, &nats.Msg{Subject: m.Reply, Data: data})
}

func (s *natsService) info(self micro.ServiceIdentity, description string) micro.Info {
	info := micro.Info{ServiceIdentity: self, Type: micro.InfoResponseType, Description: description}
	for _, e := range s.server.endpoints {
		info.Endpoints = append(info.Endpoints, micro.EndpointInfo{Name: e.Name, Subject: e.Subject, QueueGroup: micro.DefaultQueueGroup, Metadata: map[string]string{}})
	}
	return info
}

// stats returns the statistics of the endpoints. The time of a request is from its arrival to its answer.
func (s *natsService) stats(self micro.ServiceIdentity, started time.Time) micro.Stats {
	stats := micro.Stats{ServiceIdentity: self, Type: micro.StatsResponseType, Started: started}
	for _, e := range s.server.endpoints {
		one := &micro.EndpointStats{Name: e.Name, Subject: e.Subject, QueueGroup: micro.DefaultQueueGroup,
			NumRequests: int(e.requests.Load()), NumErrors: int(e.errors.Load()), ProcessingTime: time.Duration(e.nanoseconds.Load())}
		if one.NumRequests > 0 {
			one.AverageProcessingTime = one.ProcessingTime / time.Duration(one.NumRequests)
		}
		stats.Endpoints = append(stats.Endpoints, one)
	}
	return stats
}
