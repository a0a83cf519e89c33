package book

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// imageVersion is the first byte of an image. Records follow, each after its length. Their encoding allows new fields.
const imageVersion = 3

// mostTasks is the maximum number of tasks or job numbers in a record, so that it fits in one payload.
const mostTasks = 1 << 16

// mostPast is the maximum number of archived jobs in one record.
const mostPast = 1 << 8

// Image is a captured book. It copies the state that may change, and shares the memory of all other state with the
// book. An image is written as a sequence of records. Each record is also an Image, but a small one: it has only the
// field Head, or a few elements of one of the lists.
type Image struct {
	Head       *imageHead
	Jobs       []*Job      // a written job has no tasks and no doubts here: they are in the next records
	Tasks      []taskImage // Tasks and Doubts are used only in written records
	Doubts     []doubtImage
	Nodes      []nodeImage
	Effects    []Effect
	Tariffs    []tariffImage
	Notes      []noteImage
	Quotes     []Quote
	Tokens     []messages.TokenState
	RemoteJobs []RemoteJob
	// Ended has the numbers of the jobs that ended here, in the order of their ends. Returned has the numbers of the
	// jobs that ended at other sites, in the same order.
	Ended, Returned []messages.JobID

	End bool // true only in the last record

	Notices []Notice
	Past    []Past
	Windows []market.Window

	chunks []*chunk // only in a captured image: its jobs
	unread unread   // changes of tariffs that are not yet in the costs of all jobs
	packed *packed  // only in an image that is being read: the jobs that have not begun
}

// packed collects the jobs of an image that have not begun, with their entries for the index.
type packed struct {
	table table
	names []packedName
}

type packedName struct {
	id              messages.JobID
	account, market messages.Name
	key             string // the job's key in the index
}

// imageHead has the part of the state that stays small. The lists that can grow, such as the jobs, are written
// separately.
type imageHead struct {
	Now            messages.Time
	LastJob        messages.JobID
	LastEffect     uint64
	LastQuote      uint64
	Markets        []market.Market
	MarketsVersion uint64
	LastNotice     uint64
	LastRelease    uint64
	Applied        []Applied
	Backup         messages.Time
	Promises       []Promises
	Licenses       []job.LicenseStatus
	Bounds         []MarketBounds
	LastWindow     uint32
}

// taskImage holds tasks of one stage. The stage belongs to the job that comes before it in the image. The field Again
// has positions in the stage: these tasks have lost their slot or node, and must be claimed again.
type taskImage struct {
	Stage int
	Tasks []Task
	Again []uint32
}

// doubtImage is a doubt about one task. The task belongs to the job that stands before this record in the image.
type doubtImage struct {
	Task  messages.TaskRef
	Doubt Doubt
}

// nodeImage is a node with its claims, in order.
type nodeImage struct {
	Node   Node
	Claims []claimImage
}

type claimImage struct {
	Task  messages.TaskRef
	Claim NodeClaim
}

type tariffImage struct {
	Market  messages.Name
	Tariffs []Tariff
	Spells  []spell
}

type noteImage struct {
	Market messages.Name
	Note   Note
}

// Capture returns an image of the book.
func (b *Book) Capture() *Image {
	im := &Image{
		Head: &imageHead{Backup: b.index.backup, Now: b.clock.now, LastJob: b.index.lastJob, LastEffect: b.effects.last, LastQuote: b.quotes.last,
			Markets: b.markets.applied, MarketsVersion: b.markets.version, LastNotice: b.notices.lastSent, LastRelease: b.effects.freed, LastWindow: b.windows.last, Applied: slices.Clone(b.markets.answers), Promises: slices.Clone(b.markets.promises), Licenses: b.Licenses(), Bounds: b.bounds.list()},
		Notices: slices.Collect(b.notices.queue.all),
		Ended:   slices.Clone(b.jobs.ended), Returned: slices.Clone(b.remote.returned), chunks: b.jobs.byID.capture(), unread: maps.Clone(b.meters.unread), Effects: slices.Collect(b.EachEffect), Tokens: b.Tokens(), Windows: b.Windows(),
	}
	for _, n := range b.nodes.inOrder {
		im.Nodes = append(im.Nodes, n.image())
	}
	for _, market := range slices.Sorted(maps.Keys(b.meters.tariffs)) {
		im.Tariffs = append(im.Tariffs, tariffImage{market, b.meters.tariffs[market], b.meters.spells[market]})
	}
	for _, market := range slices.Sorted(maps.Keys(b.markets.notes)) {
		for _, n := range b.Notes(market) {
			im.Notes = append(im.Notes, noteImage{market, n})
		}
	}
	for q := range b.quotes.expiring.all {
		im.Quotes = append(im.Quotes, *q)
	}
	for _, r := range b.remote.remoteJobs {
		im.RemoteJobs = append(im.RemoteJobs, *r)
	}
	for p := range b.EachPast {
		im.Past = append(im.Past, *p)
	}
	return im
}

func (n *Node) image() nodeImage {
	im := nodeImage{Node: *n, Claims: make([]claimImage, 0, len(n.Claims))}
	for _, r := range n.claimed() {
		im.Claims = append(im.Claims, claimImage{r, n.Claims[r]})
	}
	im.Node.Claims, im.Node.halted, im.Node.windows, im.Node.taking = nil, nil, nil, nil
	im.Node.Used, im.Node.Stop, im.Node.Ahead = slices.Clone(n.Used), slices.Clone(n.Stop), slices.Clone(n.Ahead)
	im.Node.Gatherings = slices.Clone(n.Gatherings)
	return im
}

// WriteTo writes the image. Books that applied the same commands write the same bytes.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	buffered := bufio.NewWriterSize(w, 1<<16)
	n, err := im.encode(buffered)
	return n, errors.Join(err, buffered.Flush())
}

// Hash returns the SHA-256 of the book's image.
func (b *Book) Hash() [sha256.Size]byte {
	h := sha256.New()
	if _, err := b.Capture().encode(h); err != nil {
		panic(err) // writing to a hash cannot fail, and every field can be encoded
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (im *Image) encode(w io.Writer) (size int64, err error) {
	slices.SortFunc(im.RemoteJobs, func(a, b RemoteJob) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.Past, func(a, b Past) int { return cmp.Compare(a.ID, b.ID) })
	write := func(data []byte) {
		if err == nil {
			_, err = w.Write(data)
			size += int64(len(data))
		}
	}
	emit := func(r Image) bool {
		data, failed := wire.Marshal(&r, wire.Msgpack)
		if err = cmp.Or(err, failed); err == nil {
			write(binary.AppendUvarint(nil, uint64(len(data))))
			write(data)
		}
		return err == nil
	}
	write([]byte{imageVersion})
	emit(Image{Head: im.Head})
	var job []byte
	for _, c := range im.chunks {
		for i := range c.slots {
			if s := &c.slots[i]; s.packed != "" {
				job = append(appendRecord(append(job[:0], around()[0]...), s.packed), around()[1]...)
				write(binary.AppendUvarint(nil, uint64(len(job))))
				write(job)
			} else if s.job != nil {
				s.job.records(im.unread, emit)
			}
		}
	}
	im.elements(emit)
	emit(Image{End: true})
	return size, err
}

func (im *Image) elements(yield func(Image) bool) bool {
	return eachOf(im.Jobs, 1, func(j []*Job) bool { return j[0].records(im.unread, yield) }) &&
		eachOf(im.Nodes, 1, func(n []nodeImage) bool { return yield(Image{Nodes: n}) }) &&
		eachOf(im.Effects, 1, func(e []Effect) bool { return yield(Image{Effects: e}) }) &&
		eachOf(im.Notices, 1, func(n []Notice) bool { return yield(Image{Notices: n}) }) &&
		eachOf(im.Tariffs, 1, func(t []tariffImage) bool { return yield(Image{Tariffs: t}) }) &&
		eachOf(im.Notes, 1, func(n []noteImage) bool { return yield(Image{Notes: n}) }) &&
		eachOf(im.Quotes, 1, func(q []Quote) bool { return yield(Image{Quotes: q}) }) &&
		eachOf(im.Windows, 1, func(w []market.Window) bool { return yield(Image{Windows: w}) }) &&
		eachOf(im.Tokens, 1, func(t []messages.TokenState) bool { return yield(Image{Tokens: t}) }) &&
		eachOf(im.RemoteJobs, 1, func(r []RemoteJob) bool { return yield(Image{RemoteJobs: r}) }) &&
		eachOf(im.Ended, mostTasks, func(ids []messages.JobID) bool { return yield(Image{Ended: ids}) }) &&
		eachOf(im.Returned, mostTasks, func(ids []messages.JobID) bool { return yield(Image{Returned: ids}) }) &&
		eachOf(im.Past, mostPast, func(p []Past) bool { return yield(Image{Past: p}) })
}

// eachOf calls yield with the next n elements of a list, until the list ends or yield returns false.
func eachOf[T any](all []T, n int, yield func([]T) bool) bool {
	for some := range slices.Chunk(all, n) {
		if !yield(some) {
			return false
		}
	}
	return true
}

// The method `records` divides the state of a job into records, and calls `yield` for each record. Before that, it adds
// to the job's meters the cost of its slots since the latest change of tariffs.
func (j *Job) records(u unread, yield func(Image) bool) bool {
	bare := *j
	bare.Stages = slices.Clone(j.Stages)
	u.catchUp(&bare)
	for i := range bare.Stages {
		bare.Stages[i].Tasks, bare.Stages[i].Again = nil, nil
	}
	if !yield(Image{Jobs: []*Job{&bare}}) {
		return false
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		all := eachOf(s.Tasks, mostTasks, func(tasks []Task) bool { return yield(Image{Tasks: []taskImage{{Stage: i, Tasks: tasks}}}) }) &&
			eachOf(s.Again, mostTasks, func(again []uint32) bool { return yield(Image{Tasks: []taskImage{{Stage: i, Again: again}}}) })
		if !all {
			return false
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(j.Doubts), func(x, y [2]uint32) int { return slices.Compare(x[:], y[:]) }) {
		if !yield(Image{Doubts: []doubtImage{{messages.TaskRef{Job: j.ID, Stage: at[0], Index: at[1]}, *j.Doubts[at]}}}) {
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
	watched := b.watch.watched
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
	case version > imageVersion:
		return nil, messages.NewerFormat("the auctioneer's image", int(version), imageVersion)
	case version < imageVersion:
		return nil, fmt.Errorf("it has format %d, and this program reads only format %d", version, imageVersion)
	}
	im := &Image{packed: &packed{table: table{chunks: map[messages.JobID]*chunk{}}}}
	for !im.End {
		var one Image
		if err := readRecord(r, &one); err != nil {
			return nil, err
		}
		if err := im.add(&one); err != nil {
			return nil, err
		}
	}
	return im, nil
}

func readRecord(r *bufio.Reader, into *Image) error {
	length, err := binary.ReadUvarint(r)
	if err != nil {
		return noEnd(err)
	}
	if length > wire.MaxPayload {
		return fmt.Errorf("a record of %d bytes is too large for an image", length)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return noEnd(err)
	}
	return wire.Unmarshal(data, wire.Msgpack, into)
}

// noEnd returns the error for an image that stops before its end record.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// add adds a record to the image that is being read. A record may have tasks without their job. They belong to the job
// that was added last. The same holds for the record's doubts: notes that tasks may have failed because of their node.
func (im *Image) add(one *Image) error {
	im.Head, im.End = cmp.Or(one.Head, im.Head), one.End
	if slices.ContainsFunc(one.Jobs, func(j *Job) bool { return j == nil || j.Spec == nil }) {
		return errors.New("a job without a description")
	}
	if im.End || len(one.Jobs) > 0 { // the last job is complete
		im.pack()
	}
	im.Jobs, im.Nodes, im.Effects = append(im.Jobs, one.Jobs...), append(im.Nodes, one.Nodes...), append(im.Effects, one.Effects...)
	im.Tariffs, im.Notes, im.Quotes = append(im.Tariffs, one.Tariffs...), append(im.Notes, one.Notes...), append(im.Quotes, one.Quotes...)
	im.Tokens, im.RemoteJobs = append(im.Tokens, one.Tokens...), append(im.RemoteJobs, one.RemoteJobs...)
	im.Notices, im.Past, im.Windows = append(im.Notices, one.Notices...), append(im.Past, one.Past...), append(im.Windows, one.Windows...)
	im.Ended, im.Returned = append(im.Ended, one.Ended...), append(im.Returned, one.Returned...)
	if im.Head == nil {
		return errors.New("it has no head")
	}
	for i := range one.Tasks {
		t, last := &one.Tasks[i], len(im.Jobs)-1
		if last < 0 || t.Stage < 0 || t.Stage >= len(im.Jobs[last].Stages) {
			return fmt.Errorf("tasks of stage %d of no job", t.Stage)
		}
		s := &im.Jobs[last].Stages[t.Stage]
		s.Tasks, s.Again = append(s.Tasks, t.Tasks...), append(s.Again, t.Again...)
		for _, index := range t.Again {
			if int(index) < len(s.Tasks) && s.Tasks[index].Phase != Pending {
				s.gone++
			}
		}
	}
	for i := range one.Doubts {
		if len(im.Jobs) == 0 {
			return errors.New("a doubt of no job")
		}
		im.Jobs[len(im.Jobs)-1].doubt(&one.Doubts[i])
	}
	return nil
}

// pack saves memory: it stores the last job of the image as bytes. It does so only if the job has not begun and waits
// for no other job. The links to the jobs that wait for this job are made later.
func (im *Image) pack() {
	last := len(im.Jobs) - 1
	if im.packed == nil || last < 0 || im.Jobs[last].Blocked > 0 || im.Jobs[last].Paired {
		return
	}
	j := im.Jobs[last]
	if data := j.pack(); data != "" {
		im.packed.table.enter(j, data)
		im.packed.names = append(im.packed.names, packedName{j.ID, j.Account, j.Spec.Market, keyOf(data, j.Account, j.Key)})
		im.Jobs = im.Jobs[:last]
	}
}

func (j *Job) doubt(d *doubtImage) {
	if j.Doubts == nil {
		j.Doubts = map[[2]uint32]*Doubt{}
	}
	j.Doubts[place(d.Task)] = &d.Doubt
}

// load fills an empty book from an image, and recomputes the state that an image leaves out.
func (b *Book) load(im *Image) {
	h := im.Head
	b.clock.now, b.index.lastJob, b.effects.last, b.quotes.last, b.effects.freed = h.Now, h.LastJob, h.LastEffect, h.LastQuote, h.LastRelease
	b.jobs.ended, b.remote.returned, b.markets.applied, b.markets.version = im.Ended, im.Returned, h.Markets, h.MarketsVersion
	b.markets.answers, b.markets.promises = h.Applied, h.Promises
	for _, s := range h.Licenses {
		*b.licenses.status(s.Name) = s
	}
	b.tokens.enter(im.Tokens)
	b.notices.lastSent, b.index.backup = h.LastNotice, h.Backup
	for i := range im.Effects {
		b.effects.enter(im.Effects[i])
	}
	for _, n := range im.Notices {
		b.notices.enter(n)
	}
	for _, t := range im.Tariffs {
		b.meters.tariffs[t.Market] = t.Tariffs
		if t.Spells != nil {
			b.meters.spells[t.Market] = t.Spells
		}
	}
	for _, n := range im.Notes {
		b.markets.note(n.Market, []Note{n.Note}, false)
	}
	for i := range im.Quotes {
		b.quotes.enter(&im.Quotes[i])
	}
	for i := range im.Nodes {
		n := &im.Nodes[i]
		n.Node.Claims = make(map[messages.TaskRef]NodeClaim, len(n.Claims))
		for _, c := range n.Claims {
			n.Node.set(c.Task, c.Claim)
		}
		b.nodes.add(&n.Node)
	}
	b.windows.last = h.LastWindow
	for i := range im.Windows {
		b.windows.enter(&im.Windows[i])
	}
	b.windows.schedule()
	for i := range im.RemoteJobs {
		r := &im.RemoteJobs[i]
		if b.remote.remoteJobs[r.ID] = r; r.Phase != Over {
			b.remote.departed[r.Peer]++
		}
		b.index.enter(r.Account, r.Key, r.ID, r.Phase <= There)
	}
	for i := range im.Past {
		b.loadPast(&im.Past[i])
	}
	if im.packed != nil {
		b.loadPacked(im.packed)
	}
	b.loadJobs(im.Jobs)
	b.bounds.set(h.Bounds)
	for _, n := range b.nodes.inOrder {
		for r := range n.Claims {
			if j := b.jobs.get(r.Job); j != nil {
				b.bounds.recount(j, n, r)
			}
		}
	}
	b.endings.archiveOldest()
	b.remote.archiveOldest()
}

func (b *Book) loadPacked(p *packed) {
	b.jobs.byID.chunks, b.jobs.byID.count = p.table.chunks, p.table.count
	for _, n := range p.names {
		b.index.list(n.account, n.id, true)
		b.index.keys[n.key] = n.id
		b.jobs.live(n.market, 1)
	}
}

// loadJobs enters jobs in ascending order, and then links their dependencies.
func (b *Book) loadJobs(jobs []*Job) {
	for _, j := range jobs {
		j.Kept.shareDetails()
		b.jobs.byID.enter(j, "")
		b.index.enter(j.Account, j.Key, j.ID, !j.State.Final())
		if !j.State.Final() {
			b.jobs.live(j.Spec.Market, 1)
		}
		b.visitors.enter(j)
	}
	for _, j := range jobs {
		if !j.Active() {
			continue
		}
		if j.Blocked > 0 || j.Paired {
			b.dependencies.await(j)
			b.index.shorten(j, b.jobs.byID.put(j))
		}
		b.exchanges.recount(j)
		if j.Order != nil {
			b.jobs.ordered[j.ID] = true
		}
		if b.meters.tariffs[j.Spec.Market] != nil {
			b.meters.enlist(j)
		}
	}
}

func (b *Book) loadPast(p *Past) {
	b.index.recall(p.Account, p.Key, p.ID)
	if p.Peer != "" {
		b.remote.past[p.ID] = p
	} else {
		b.jobs.past[p.ID] = p
	}
}

// The variable `around` has the encoding of an image with only one job, without the bytes of this job. The first
// element has the bytes before the job, and the second element has the bytes after the job.
var around = sync.OnceValue(func() (out [2][]byte) {
	record, err := wire.Marshal(&Image{Jobs: []*Job{{}}}, wire.Msgpack)
	job, failed := wire.Marshal(&Job{}, wire.Msgpack)
	if err != nil || failed != nil {
		panic("an image has no encoding")
	}
	out[0], out[1], _ = bytes.Cut(record, job)
	return out
})
