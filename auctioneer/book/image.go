package book

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// imageVersion is the first byte of an image. What follows are records, each with its
// length before it and in the encoding of commands, so that their structs can grow.
const imageVersion = 2

// mostTasks bounds the tasks of one record, which must be no longer than a payload.
const mostTasks = 1 << 16

// Image is a captured book: what may still change is copied, what never
// changes is shared with the book it was taken from.
type Image struct {
	head    imageHead
	jobs    []Job
	nodes   []nodeImage
	effects []Effect
	tariffs []tariffImage
	notes   []noteImage
	quotes  []Quote
	tokens  []messages.TokenState
	roams   []Roam
}

// imageHead is all that is not a list of things of any size.
type imageHead struct {
	Now            messages.Time
	LastJob        messages.JobID
	LastEffect     uint64
	LastQuote      uint64
	Ended          []messages.JobID
	Returned       []messages.JobID
	Markets        []messages.Market
	MarketsVersion uint64
}

// record is a part of an image: one field is set.
type record struct {
	Head    *imageHead
	Job     *Job // without its tasks
	Tasks   *taskImage
	Doubt   *doubtImage
	Node    *nodeImage
	Effect  *Effect
	Tariffs *tariffImage
	Note    *noteImage
	Quote   *Quote
	Token   *messages.TokenState
	Roam    *Roam
	End     bool // nothing follows
}

// taskImage is some tasks of the last job, and some that are to be claimed again.
type taskImage struct {
	Stage int
	Tasks []Task
	Again []uint32
}

// doubtImage is a doubt of the last job.
type doubtImage struct {
	Task  messages.TaskRef
	Doubt Doubt
}

// nodeImage is a node with its claims in order.
type nodeImage struct {
	Node   Node
	Claims []claimImage
}

type claimImage struct {
	Task  messages.TaskRef
	Claim NodeClaim
}

// tariffImage is the tariffs of a market.
type tariffImage struct {
	Market  messages.Name
	Tariffs []Tariff
}

// noteImage is a note of a market.
type noteImage struct {
	Market messages.Name
	Note   Note
}

// Capture returns an image of the book as it is now.
func (b *Book) Capture() *Image {
	im := &Image{
		head: imageHead{Now: b.now, LastJob: b.lastJob, LastEffect: b.effects.last, LastQuote: b.quotes.last,
			Ended: slices.Clone(b.jobs.ended), Returned: slices.Clone(b.returned), Markets: b.applied, MarketsVersion: b.version},
		jobs: make([]Job, 0, len(b.byID)), effects: slices.Clone(b.waiting), tokens: b.issued,
	}
	for _, j := range b.byID {
		im.jobs = append(im.jobs, j.copy())
	}
	for _, n := range b.inOrder {
		im.nodes = append(im.nodes, n.image())
	}
	for _, market := range slices.Sorted(maps.Keys(b.tariffs)) {
		im.tariffs = append(im.tariffs, tariffImage{market, b.tariffs[market]})
	}
	for _, market := range slices.Sorted(maps.Keys(b.notes)) {
		for _, n := range b.Notes(market) {
			im.notes = append(im.notes, noteImage{market, n})
		}
	}
	for _, q := range b.quoted {
		im.quotes = append(im.quotes, *q)
	}
	for _, r := range b.roams {
		im.roams = append(im.roams, *r)
	}
	return im
}

func (j *Job) copy() Job {
	c := *j
	c.Stages = slices.Clone(j.Stages)
	for i := range c.Stages {
		c.Stages[i].Tasks = slices.Clone(c.Stages[i].Tasks)
		c.Stages[i].Again = slices.Clone(c.Stages[i].Again)
	}
	c.Doubts = maps.Clone(j.Doubts)
	for at, d := range c.Doubts {
		c.Doubts[at] = &Doubt{slices.Clone(d.Nodes), d.Spared}
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

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Hash is the SHA-256 of the book's image.
func (b *Book) Hash() [sha256.Size]byte {
	h := sha256.New()
	if err := b.Capture().encode(h); err != nil {
		panic(err) // a hash does not fail, and every field can be encoded
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (im *Image) encode(w io.Writer) error {
	slices.SortFunc(im.jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.roams, func(a, b Roam) int { return cmp.Compare(a.ID, b.ID) })
	if _, err := w.Write([]byte{imageVersion}); err != nil {
		return err
	}
	for r := range im.records {
		data, err := messages.Marshal(&r, messages.Msgpack)
		if err != nil {
			return err
		}
		if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(data)))); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// records calls yield for each record, until yield returns false.
func (im *Image) records(yield func(record) bool) {
	_ = yield(record{Head: &im.head}) &&
		eachOf(im.jobs, func(j *Job) bool { return j.records(yield) }) &&
		eachOf(im.nodes, func(n *nodeImage) bool { return yield(record{Node: n}) }) &&
		eachOf(im.effects, func(e *Effect) bool { return yield(record{Effect: e}) }) &&
		eachOf(im.tariffs, func(t *tariffImage) bool { return yield(record{Tariffs: t}) }) &&
		eachOf(im.notes, func(n *noteImage) bool { return yield(record{Note: n}) }) &&
		eachOf(im.quotes, func(q *Quote) bool { return yield(record{Quote: q}) }) &&
		eachOf(im.tokens, func(t *messages.TokenState) bool { return yield(record{Token: t}) }) &&
		eachOf(im.roams, func(r *Roam) bool { return yield(record{Roam: r}) }) &&
		yield(record{End: true})
}

func eachOf[T any](all []T, yield func(*T) bool) bool {
	for i := range all {
		if !yield(&all[i]) {
			return false
		}
	}
	return true
}

// records are those of a job.
func (j *Job) records(yield func(record) bool) bool {
	bare := *j
	bare.Stages = slices.Clone(j.Stages)
	for i := range bare.Stages {
		bare.Stages[i].Tasks, bare.Stages[i].Again = nil, nil
	}
	if !yield(record{Job: &bare}) {
		return false
	}
	for i := range j.Stages {
		for tasks := range slices.Chunk(j.Stages[i].Tasks, mostTasks) {
			if !yield(record{Tasks: &taskImage{Stage: i, Tasks: tasks}}) {
				return false
			}
		}
		for again := range slices.Chunk(j.Stages[i].Again, mostTasks) {
			if !yield(record{Tasks: &taskImage{Stage: i, Again: again}}) {
				return false
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(j.Doubts), func(x, y [2]uint32) int { return slices.Compare(x[:], y[:]) }) {
		if !yield(record{Doubt: &doubtImage{messages.TaskRef{Job: j.ID, Stage: at[0], Index: at[1]}, *j.Doubts[at]}}) {
			return false
		}
	}
	return true
}

// Restore replaces the book by an image.
func (b *Book) Restore(r io.Reader) error {
	im, err := readImage(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return fmt.Errorf("book image: %w", err)
	}
	watched := b.watched
	b.clear()
	b.load(im)
	b.Watch(watched)
	return nil
}

func readImage(r *bufio.Reader) (*Image, error) {
	version, err := r.ReadByte()
	switch {
	case err != nil:
		return nil, err
	case version == 0x90|imageFields: // a list of fields
		return readVersion1(r)
	case version != imageVersion:
		return nil, fmt.Errorf("version %d is not %d, the one this program reads", version, imageVersion)
	}
	im := new(Image)
	for {
		var one record
		if err := readRecord(r, &one); err != nil {
			return nil, err
		}
		if one.End {
			return im, nil
		}
		if err := im.add(&one); err != nil {
			return nil, err
		}
	}
}

func readRecord(r *bufio.Reader, into *record) error {
	length, err := binary.ReadUvarint(r)
	if err != nil {
		return noEnd(err)
	}
	if length > messages.MaxPayload {
		return fmt.Errorf("a record of %d bytes", length)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return noEnd(err)
	}
	return messages.Unmarshal(data, messages.Msgpack, into)
}

// noEnd is the error of a read before the end of an image.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// add adds a record to the image.
func (im *Image) add(r *record) error {
	switch {
	case r.Head != nil:
		im.head = *r.Head
	case r.Job != nil:
		im.jobs = append(im.jobs, *r.Job)
	case r.Tasks != nil, r.Doubt != nil:
		return im.addTasks(r.Tasks, r.Doubt)
	case r.Node != nil:
		im.nodes = append(im.nodes, *r.Node)
	case r.Effect != nil:
		im.effects = append(im.effects, *r.Effect)
	case r.Tariffs != nil:
		im.tariffs = append(im.tariffs, *r.Tariffs)
	case r.Note != nil:
		im.notes = append(im.notes, *r.Note)
	case r.Quote != nil:
		im.quotes = append(im.quotes, *r.Quote)
	case r.Token != nil:
		im.tokens = append(im.tokens, *r.Token)
	case r.Roam != nil:
		im.roams = append(im.roams, *r.Roam)
	}
	return nil
}

// addTasks adds tasks or a doubt to the last job.
func (im *Image) addTasks(t *taskImage, d *doubtImage) error {
	if len(im.jobs) == 0 {
		return errors.New("tasks of no job")
	}
	j := &im.jobs[len(im.jobs)-1]
	if d != nil {
		j.doubt(d)
		return nil
	}
	if t.Stage < 0 || t.Stage >= len(j.Stages) {
		return fmt.Errorf("tasks of stage %d of job %d", t.Stage, j.ID)
	}
	s := &j.Stages[t.Stage]
	s.Tasks, s.Again = append(s.Tasks, t.Tasks...), append(s.Again, t.Again...)
	return nil
}

func (j *Job) doubt(d *doubtImage) {
	if j.Doubts == nil {
		j.Doubts = map[[2]uint32]*Doubt{}
	}
	j.Doubts[place(d.Task)] = &d.Doubt
}

// load fills an empty book, and works out what an image leaves out.
func (b *Book) load(im *Image) {
	h := &im.head
	b.now, b.lastJob, b.effects.last, b.quotes.last = h.Now, h.LastJob, h.LastEffect, h.LastQuote
	b.jobs.ended, b.returned, b.applied, b.version = h.Ended, h.Returned, h.Markets, h.MarketsVersion
	b.waiting, b.issued = im.effects, im.tokens
	for _, t := range im.tariffs {
		b.tariffs[t.Market] = t.Tariffs
	}
	for _, n := range im.notes {
		b.note(n.Market, []Note{n.Note}, false)
	}
	for i := range im.quotes {
		b.quoted = append(b.quoted, &im.quotes[i])
	}
	for i := range im.nodes {
		n := &im.nodes[i]
		n.Node.Claims = make(map[messages.TaskRef]NodeClaim, len(n.Claims))
		for _, c := range n.Claims {
			n.Node.Claims[c.Task] = c.Claim
		}
		b.inOrder = append(b.inOrder, &n.Node)
		b.names[n.Node.Name] = uint32(i)
	}
	for i := range im.roams {
		r := &im.roams[i]
		b.roams[r.ID] = r
		b.index.enter(r.Account, r.Key, r.ID, r.Phase <= There)
	}
	b.loadJobs(im.jobs)
	b.sort()
}

// loadJobs enters jobs, ascending: who waits for whom is asked once all are there.
func (b *Book) loadJobs(jobs []Job) {
	for i := range jobs {
		j := &jobs[i]
		b.byID[j.ID] = j
		b.index.enter(j.Account, j.Key, j.ID, !j.State.Final())
		b.visitors.enter(j)
	}
	for i := range jobs {
		j := &jobs[i]
		if !j.Active() {
			continue
		}
		if j.Blocked > 0 {
			b.await(j)
		}
		if j.Order != nil {
			b.ordered[j.ID] = j
		}
		if j.Started != 0 && b.tariffs[j.Spec.Market] != nil {
			b.enlist(j)
		}
	}
}
