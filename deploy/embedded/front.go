package embedded

import (
	"io"

	"github.com/candor-grid/candor/auctioneer/front"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// startFront starts the front of a site with several auctioneers. With hosts each has one,
// and any of them answers.
func startFront(s *share) (*service, error) {
	return s.servingAs(identity.Front, messages.Auctioneer, func(b bus.Bus) (io.Closer, error) {
		return front.Start(front.Config{Site: s.config.Site, Bus: b, Auctioneers: s.config.auctioneers()})
	})
}
