package clearing

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// Magic begins every image, and tells it from one of the ledger; it changes
// with the format. Images of the first format have no shares of the reserve, and
// the instructions that wait among the rest of their peer.
const (
	Magic      = "candor-clearing-2\n"
	firstMagic = "candor-clearing-1\n"
)

// Begins reports whether an image of a clearing begins so, of any format that
// can be read.
func Begins(first []byte) bool { return string(first) == Magic || string(first) == firstMagic }

// Image is a clearing at one moment. Later changes leave it untouched, and it
// may be used by other goroutines. It does not hold the ledger: capture the
// two together.
type Image struct {
	head     imageHead
	peers    []imagePeer
	waiting  []imageItem     // of all outboxes, in the order of the peers
	issued   []imageIssued   // by identifier
	accepted []imageAccepted // by issuer and identifier
}

// What an image consists of. Each value is written in canonical msgpack; their
// fields are exported for the encoding alone, and only ever added at the end.
type (
	imageHead struct {
		Site     messages.Name
		Cycle    uint64
		Serial   uint64
		Refused  []uint64
		Fault    string
		Peers    int
		Issued   int
		Accepted int
	}
	imagePeer struct {
		Name     messages.Name
		Keys     []string
		Heard    messages.Time
		Out, In  imageBook
		Outbox   []imageItem // in images of the first format
		Outcomes []messages.TransferResult
		Known    uint64
		Cycles   []cycle
		Counted  messages.Credits
		Dispute  string
		Waiting  int
		Share    messages.Credits
		Stated   bool
	}
	imageBook struct {
		Base, Total messages.RunningTotal
		Lines       []imageLine
	}
	imageLine struct {
		Shown        messages.ClearingLine
		Owed, Volume messages.Credits
	}
	imageItem struct {
		Instruction messages.Instruction
		Hold        string
		Held        messages.Credits
		Payee       messages.Name
	}
	imageIssued struct {
		Authorisation messages.Authorisation
		Revoking      bool
		Job           messages.JobID
	}
	imageAccepted struct {
		Owner         string
		Until         messages.Time
		Authorisation messages.Authorisation
		Hold          string
		Closed        closing
		Taken         messages.Credits
		Number        uint64
		Purpose       string
		Firm          bool
	}
)

// Capture takes an image. It copies what the state holds: a few hundred bytes
// for each pending authorisation and each instruction that waits.
func (s *State) Capture() *Image {
	img := &Image{head: imageHead{
		Site: s.peers.site, Cycle: s.cycles.latest, Serial: s.money.serial, Refused: slices.Clone(s.incoming.refused[:]), Fault: s.money.fault,
		Peers: len(s.peers.order), Issued: len(s.issuer.issued.byID), Accepted: len(s.acceptor.accepted.byID),
	}}
	for _, name := range s.peers.order {
		p := s.peers.byName[name]
		img.peers = append(img.peers, capturePeer(p))
		for _, it := range p.outbox {
			img.waiting = append(img.waiting, imageItem{it.instruction, it.hold, it.held, it.payee})
		}
	}
	for _, e := range s.issuer.issued.sorted() {
		img.issued = append(img.issued, imageIssued{e.value.Authorisation, e.value.revoking, e.value.job})
	}
	for _, e := range s.acceptor.accepted.sorted() {
		a := &e.value
		img.accepted = append(img.accepted, imageAccepted{e.owner, e.at, a.Authorisation, a.hold, a.closed, a.taken, a.number, a.purpose, a.firm})
	}
	return img
}

func capturePeer(p *peer) imagePeer {
	return imagePeer{
		Name: p.name, Keys: slices.Clone(p.keys), Heard: p.heard,
		Out: captureBook(&p.out), In: captureBook(&p.in), Outcomes: slices.Clone(p.outcomes), Known: p.known,
		Cycles: slices.Clone(p.cycles), Counted: p.counted, Dispute: p.dispute,
		Waiting: len(p.outbox), Share: p.share, Stated: p.stated,
	}
}

func captureBook(b *book) imageBook {
	img := imageBook{Base: b.base, Total: b.total}
	for i := range b.lines {
		img.Lines = append(img.Lines, imageLine{b.lines[i].shown, b.lines[i].total.Owed, b.lines[i].total.Volume})
	}
	return img
}

// Hash is the digest of the state's image: equal for replicas that applied the
// same commands.
func (s *State) Hash() [sha256.Size]byte {
	h := sha256.New()
	s.Capture().parts(h) //nolint:errcheck // a hash takes everything
	return [sha256.Size]byte(h.Sum(nil))
}

// WriteTo writes the image: its parts, each behind its length, then their
// SHA-256. Its end shows from itself, so that more may follow.
func (img *Image) WriteTo(w io.Writer) (int64, error) { return ledger.WriteHashed(w, img.parts) }

func (img *Image) parts(w io.Writer) error {
	if _, err := io.WriteString(w, Magic); err != nil {
		return err
	}
	if err := writePart(w, &img.head); err != nil {
		return err
	}
	if err := writeParts(w, img.peers); err != nil {
		return err
	}
	if err := writeParts(w, img.waiting); err != nil {
		return err
	}
	if err := writeParts(w, img.issued); err != nil {
		return err
	}
	return writeParts(w, img.accepted)
}

func writeParts[T any](w io.Writer, list []T) error {
	for i := range list {
		if err := writePart(w, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func writePart(w io.Writer, v any) error {
	body, err := messages.Marshal(v, messages.Msgpack)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// errImage is wrapped by every error of Restore that is not the reader's own.
var errImage = errors.New("clearing: the image is damaged")

// Restore replaces the state by an image of the same site, and reads no
// further than its end. On an error the state is as it was.
func (s *State) Restore(r io.Reader) error {
	h := sha256.New()
	fresh := New(s.peers.site, s.money.books, s.screen.verify)
	if err := fresh.read(io.TeeReader(r, h)); err != nil {
		return err
	}
	var digest [sha256.Size]byte
	if _, err := io.ReadFull(r, digest[:]); err != nil {
		return fmt.Errorf("%w: it ends within its digest", errImage)
	}
	if !bytes.Equal(digest[:], h.Sum(nil)) {
		return fmt.Errorf("%w: its digest does not match", errImage)
	}
	*s = *fresh
	return nil
}

func (s *State) read(r io.Reader) error {
	first := make([]byte, len(Magic))
	if _, err := io.ReadFull(r, first); err != nil || !Begins(first) {
		return fmt.Errorf("%w: it does not begin with %q", errImage, Magic)
	}
	var head imageHead
	if err := readPart(r, &head); err != nil {
		return err
	}
	if head.Site != s.peers.site || len(head.Refused) > len(s.incoming.refused) {
		return fmt.Errorf("%w: it is of site %q, or of a newer release", errImage, clip(head.Site))
	}
	s.cycles.latest, s.money.serial, s.money.fault = head.Cycle, head.Serial, head.Fault
	copy(s.incoming.refused[:], head.Refused)
	var waiting []int // items of each peer's outbox that follow
	err := readParts(r, head.Peers, func(img *imagePeer) { waiting = append(waiting, s.restorePeer(img)) })
	for i := 0; err == nil && i < len(waiting); i++ {
		p := s.peers.byName[s.peers.order[i]]
		err = readParts(r, waiting[i], func(it *imageItem) { p.send(item{it.Instruction, it.Hold, it.Held, it.Payee}) })
	}
	if err != nil {
		return err
	}
	return errors.Join(
		readParts(r, head.Issued, s.restoreIssued),
		readParts(r, head.Accepted, s.restoreAccepted))
}

func readParts[T any](r io.Reader, n int, restore func(*T)) error {
	for range n {
		var v T
		if err := readPart(r, &v); err != nil {
			return err
		}
		restore(&v)
	}
	return nil
}

func readPart(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return fmt.Errorf("%w: it ends too early", errImage)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > messages.MaxPayload {
		return fmt.Errorf("%w: a part has %d bytes", errImage, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("%w: it ends too early", errImage)
	}
	if err := messages.Unmarshal(body, messages.Msgpack, v); err != nil {
		return fmt.Errorf("%w: %v", errImage, err)
	}
	return nil
}

// restorePeer returns how many instructions wait that follow in the image.
func (s *State) restorePeer(img *imagePeer) int {
	p := &peer{
		name: img.Name, keys: img.Keys, heard: img.Heard,
		out: restoreBook(&img.Out), in: restoreBook(&img.In), outcomes: img.Outcomes, known: img.Known,
		cycles: img.Cycles, counted: img.Counted, dispute: img.Dispute,
		share: img.Share, stated: img.Stated,
	}
	for _, it := range img.Outbox {
		p.send(item{it.Instruction, it.Hold, it.Held, it.Payee})
	}
	s.peers.add(p)
	return img.Waiting
}

func restoreBook(img *imageBook) book {
	b := book{base: img.Base, total: img.Total}
	for _, l := range img.Lines {
		total := messages.RunningTotal{Number: l.Shown.Number, Owed: l.Owed, Volume: l.Volume, Digest: l.Shown.Digest}
		b.lines = append(b.lines, line{shown: l.Shown, total: total})
	}
	return b
}

func (s *State) restoreIssued(img *imageIssued) {
	a := img.Authorisation
	s.issuer.issued.add(a.ID, a.Account, a.Frees(), issued{a, img.Revoking, img.Job})
}

func (s *State) restoreAccepted(img *imageAccepted) {
	a := accepted{img.Authorisation, img.Purpose, img.Hold, img.Closed, img.Taken, img.Number, img.Firm}
	s.acceptor.accepted.add(acceptedKey(a.Issuer, a.ID), img.Owner, img.Until, a)
	if p := s.peers.byName[a.Issuer]; p != nil {
		p.remembered++
		if a.closed == open {
			p.open++
		}
	}
}
