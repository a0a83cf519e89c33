package book

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/candor-grid/candor/messages"
)

// imageVersion stands first in an image; a reader refuses one it does not know.
const imageVersion = 1

// Image is a captured book: what may still change is copied, what never
// changes is shared with the book it was taken from.
type Image struct {
	Version   int
	Now       messages.Time
	LastJob   messages.JobID
	Jobs      []Job // ascending
	Ended     []messages.JobID
	Nodes     []nodeImage
	Effects   []Effect
	LastID    uint64
	Tariffs   []tariffImage // by market name
	Markets   []messages.Market
	Quotes    []Quote
	LastQuote uint64

	annex      annex
	supplement supplement
}

// supplement follows an annex, in the encoding of commands, to which fields can be
// added: an image of an earlier version has none.
type supplement struct {
	Health []healthImage
	Doubts []doubtImage
}

// annex follows an image, as a value of its own, so that an image without one,
// of an earlier version, can be read: an array must have all its fields.
type annex struct {
	Tokens   []messages.TokenState
	Visits   []visitImage
	Roams    [][]byte // ascending, in the encoding of commands, to which fields can be added
	Returned []messages.JobID
	Notes    []noteImage // by market name
	Most     []int       // Node.MostSuspended, in the order of nodes
	Applies  uint64
	Deposits []depositImage // by job
	Markets  []byte         // an Apply of Image.Markets with all their fields, as Roams
	Left     [][]uint64     // Node.Left, in the order of nodes

	roams   []Roam            // what Roams is encoded from
	markets []messages.Market // and Markets
}

// tariffImage is the tariffs of a market.
type tariffImage struct {
	Market  messages.Name
	Tariffs []Tariff
}

// nodeImage is a Node with its claims in order.
type nodeImage struct {
	Node   Node
	Claims []claimImage
}

type claimImage struct {
	Task messages.TaskRef
	Held NodeClaim
}

// Capture returns an image of the book as it is now.
func (b *Book) Capture() *Image {
	im := &Image{
		Version: imageVersion, Now: b.now, LastJob: b.lastJob, LastID: b.effects.last,
		Jobs: make([]Job, 0, len(b.byID)), Ended: slices.Clone(b.jobs.ended), Effects: slices.Clone(b.waiting),
	}
	for _, j := range b.byID {
		im.Jobs = append(im.Jobs, j.copy())
	}
	for _, n := range b.inOrder {
		im.Nodes = append(im.Nodes, n.image())
	}
	for _, market := range slices.Sorted(maps.Keys(b.tariffs)) {
		im.Tariffs = append(im.Tariffs, tariffImage{market, b.tariffs[market]})
	}
	im.Markets, im.LastQuote, im.annex = b.applied, b.quotes.last, b.annex()
	for _, q := range b.quoted {
		im.Quotes = append(im.Quotes, *q)
	}
	im.supplement = supplement{Health: b.healthImages(), Doubts: b.doubtImages()}
	return im
}

func (j *Job) copy() Job {
	c := *j
	c.Stages = slices.Clone(j.Stages)
	for i := range c.Stages {
		c.Stages[i].Tasks = slices.Clone(c.Stages[i].Tasks)
		c.Stages[i].Again = slices.Clone(c.Stages[i].Again)
	}
	return c
}

func (n *Node) image() nodeImage {
	im := nodeImage{Node: *n, Claims: make([]claimImage, 0, len(n.Claims))}
	for _, r := range n.claimed() {
		im.Claims = append(im.Claims, claimImage{r, n.Claims[r]})
	}
	im.Node.Claims = nil
	im.Node.Used, im.Node.Stop = slices.Clone(n.Used), slices.Clone(n.Stop)
	return im
}

// WriteTo writes the image. Books that applied the same commands write the
// same bytes.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	counted := &counter{w: w}
	buffered := bufio.NewWriterSize(counted, 1<<16)
	if err := im.encode(buffered); err != nil {
		return counted.n, err
	}
	err := buffered.Flush()
	return counted.n, err
}

func (im *Image) encode(w io.Writer) error {
	slices.SortFunc(im.Jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	enc := msgpack.NewEncoder(w)
	enc.UseArrayEncodedStructs(true)
	if err := im.annex.encode(); err != nil {
		return err
	}
	more, err := messages.Marshal(&im.supplement, messages.Msgpack)
	if err != nil {
		return err
	}
	for _, part := range []any{im, &im.annex, more} {
		if err := enc.Encode(part); err != nil {
			return err
		}
	}
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Restore replaces the book by an image.
func (b *Book) Restore(r io.Reader) error {
	var im Image
	from := msgpack.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	if err := from.Decode(&im); err != nil {
		return fmt.Errorf("book image: %w", err)
	}
	if err := from.Decode(&im.annex); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("book image: %w", err)
	}
	var more []byte
	if err := from.Decode(&more); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("book image: %w", err)
	}
	if len(more) > 0 {
		if err := messages.Unmarshal(more, messages.Msgpack, &im.supplement); err != nil {
			return fmt.Errorf("book image: %w", err)
		}
	}
	if im.Version != imageVersion {
		return fmt.Errorf("book image: version %d is not %d, the one this program reads", im.Version, imageVersion)
	}
	watched := b.watched
	b.clear()
	b.now, b.lastJob, b.jobs.ended, b.waiting, b.effects.last = im.Now, im.LastJob, im.Ended, im.Effects, im.LastID
	for i := range im.Jobs {
		j := &im.Jobs[i]
		b.byID[j.ID] = j
		b.enter(j.Account, j.Key, j.ID, !j.State.Final())
	}
	for _, t := range im.Tariffs {
		b.tariffs[t.Market] = t.Tariffs
	}
	b.applied, b.quotes.last = im.Markets, im.LastQuote
	for i := range im.Quotes {
		b.quoted = append(b.quoted, &im.Quotes[i])
	}
	if err := b.attach(&im.annex); err != nil {
		return fmt.Errorf("book image: %w", err)
	}
	b.relate(im.Jobs)
	b.sort()
	for i := range im.Nodes {
		b.inOrder = append(b.inOrder, im.Nodes[i].restore())
		if i < len(im.annex.Most) {
			b.inOrder[i].MostSuspended = im.annex.Most[i]
		}
		if i < len(im.annex.Left) {
			b.inOrder[i].Left = im.annex.Left[i]
		}
		b.names[im.Nodes[i].Node.Name] = uint32(i)
	}
	if err := b.restoreHealth(im.supplement.Health, im.supplement.Doubts); err != nil {
		return fmt.Errorf("book image: %w", err)
	}
	b.Watch(watched)
	return nil
}

// relate works out who waits for whom, and whose slots are metered.
func (b *Book) relate(jobs []Job) {
	for i := range jobs {
		j := b.byID[jobs[i].ID]
		if j.Active() && j.Blocked > 0 {
			b.await(j)
		}
		if j.Active() && j.Order != nil {
			b.ordered[j.ID] = j
		}
		if j.Active() && j.Started != 0 && b.tariffs[j.Spec.Market] != nil {
			b.enlist(j)
		}
	}
}

func (im *nodeImage) restore() *Node {
	n := im.Node
	n.Claims = make(map[messages.TaskRef]NodeClaim, len(im.Claims))
	for _, c := range im.Claims {
		n.Claims[c.Task] = c.Held
	}
	return &n
}

// Hash is the SHA-256 of the book's image.
func (b *Book) Hash() [sha256.Size]byte {
	h := sha256.New()
	if err := b.Capture().encode(h); err != nil {
		panic(err) // a hash does not fail, and every field can be encoded
	}
	return [sha256.Size]byte(h.Sum(nil))
}
