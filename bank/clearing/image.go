package clearing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/parts"
)

// Magic is the text at the beginning of every image. It changes when the format changes.
const Magic = "candor-clearing-4\n"

// Image is the state of the clearing at one moment. It does not contain the ledger, so the caller must capture the
// ledger at the same moment. Later changes do not alter the image, and any goroutine may use it.
type Image struct {
	head     imageHead
	peers    []relation
	waiting  []item     // items of all outboxes, in the order of the peers
	issued   []issued   // by identifier
	accepted []accepted // by issuer and identifier
}

// imageHead is the first value of an image. Values are in canonical msgpack. New fields are added at the end of their
// types.
type imageHead struct {
	Site     messages.Name
	Cycle    uint64
	Serial   uint64
	Refused  []uint64
	Fault    string
	Peers    int
	Issued   int
	Accepted int

	Incarnation uint64
	Since       messages.Time
	Backup      messages.Time
}

// Capture returns an image. It copies a few hundred bytes for each pending authorisation and each waiting instruction.
func (s *State) Capture() *Image {
	img := &Image{head: imageHead{
		Site: s.peers.site, Cycle: s.cycles.latest, Serial: s.money.serial, Refused: slices.Clone(s.incoming.refused[:]), Fault: s.money.fault,
		Peers: len(s.peers.order), Issued: len(s.issuer.issued.byID), Accepted: len(s.acceptor.accepted.byID), Incarnation: s.peers.incarnation, Since: s.peers.since, Backup: s.peers.backup,
	}}
	for _, name := range s.peers.order {
		p := s.peers.byName[name]
		r := p.relation
		r.Keys, r.Outcomes, r.Cycles, r.Waiting, r.Retired = slices.Clone(p.Keys), slices.Clone(p.Outcomes), slices.Clone(p.Cycles), len(p.outbox), slices.Clone(p.Retired)
		img.peers = append(img.peers, r)
		img.waiting = append(img.waiting, p.outbox...)
	}
	img.issued, img.accepted = s.issuer.issued.sorted(), s.acceptor.accepted.sorted()
	return img
}

// Hash returns the digest of the state's image. It is equal on replicas that applied the same commands.
func (s *State) Hash() [sha256.Size]byte { return s.Capture().sum() }

func (img *Image) sum() [sha256.Size]byte {
	h := sha256.New()
	img.parts(h) //nolint:errcheck // writing to a hash cannot fail
	return [sha256.Size]byte(h.Sum(nil))
}

// WriteTo writes the parts of the image, and the length of each part before it. After the last part it writes the
// SHA-256 of all parts. Other data may follow.
func (img *Image) WriteTo(w io.Writer) (int64, error) { return parts.WriteHashed(w, img.parts) }

func (img *Image) parts(w io.Writer) error {
	_, err := io.WriteString(w, Magic)
	return errors.Join(err, parts.Write(w, img.head), parts.Write(w, img.peers...), parts.Write(w, img.waiting...), parts.Write(w, img.issued...), parts.Write(w, img.accepted...))
}

// Restore replaces the state by an image of the same site. It reads only to the end of the image. After an error the
// state has not changed.
func (s *State) Restore(r io.Reader) error {
	fresh := New(s.peers.site, s.money.books, s.screen.verify)
	if err := parts.ReadHashed(r, fresh.read); err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	*s = *fresh
	return nil
}

func (s *State) read(r io.Reader) error {
	first := make([]byte, len(Magic))
	_, err := io.ReadFull(r, first)
	if newer := messages.CheckFormat("the image of the bank's settlements", string(first), Magic); newer != nil {
		return newer
	}
	if err != nil || string(first) != Magic {
		return fmt.Errorf("%w: it does not begin with %q", parts.ErrDamaged, Magic)
	}
	var head imageHead
	if err := parts.Read(r, 1, func(h *imageHead) { head = *h }); err != nil {
		return err
	}
	if head.Site != s.peers.site || len(head.Refused) > len(s.incoming.refused) {
		return fmt.Errorf("%w: its site is %q, or a newer release wrote it", parts.ErrDamaged, clip(head.Site))
	}
	s.cycles.latest, s.money.serial, s.money.fault = head.Cycle, head.Serial, head.Fault
	s.peers.incarnation, s.peers.since, s.peers.backup = head.Incarnation, head.Since, head.Backup
	copy(s.incoming.refused[:], head.Refused)
	var waiting []int // by peer: number of the outbox items that follow
	err = parts.Read(r, head.Peers, func(img *relation) { waiting = append(waiting, s.restorePeer(img)) })
	for i := 0; err == nil && i < len(waiting); i++ {
		p := s.peers.byName[s.peers.order[i]]
		err = parts.Read(r, waiting[i], func(it *item) { p.send(*it) })
	}
	if err != nil {
		return err
	}
	return errors.Join(
		parts.Read(r, head.Issued, func(a *issued) { s.issuer.issued.add(*a) }),
		parts.Read(r, head.Accepted, func(a *accepted) { s.acceptor.remember(*a) }))
}

// restorePeer restores a peer. It returns the number of the peer's instructions: they follow in the image.
func (s *State) restorePeer(r *relation) int {
	p, waiting := &peer{relation: *r}, r.Waiting
	p.Waiting = 0
	s.peers.add(p)
	return waiting
}
