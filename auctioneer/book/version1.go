package book

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/candor-grid/candor/messages"
)

// Images of version 1 were a list of fields in a stricter encoding, followed by an
// annex and a supplement. They are read, and not written any more.

// imageFields is how many fields an image of version 1 has, which its first byte says.
const imageFields = 12

// annex1 is what did not stand in the first part of an image of version 1.
type annex1 struct {
	Tokens []messages.TokenState
	Visits []struct {
		Job           messages.JobID
		Home          messages.Name
		Number        messages.JobID
		Authorisation string
		Until         messages.Time
	}
	RemoteJobs [][]byte // in the encoding of commands
	Returned   []messages.JobID
	Notes      []struct {
		Market messages.Name
		Notes  []Note
	}
	MostSuspended  []int // in the order of nodes
	MarketsVersion uint64
	Deposits       []struct {
		Job     messages.JobID
		Deposit Deposit
	}
	Markets []byte     // an Apply, in the encoding of commands
	Left    [][]uint64 // in the order of nodes
}

// supplement1 is in the encoding of commands.
type supplement1 struct {
	Health []struct {
		Node   uint32
		Health Health
	}
	Doubts []doubtImage
}

// readVersion1 reads an image of version 1, but for its first byte.
func readVersion1(r *bufio.Reader) (*Image, error) {
	from := msgpack.NewDecoder(r)
	im, h, a, more := new(Image), new(imageHead), new(annex1), []byte(nil)
	version := 0
	for _, into := range []any{&version, &h.Now, &h.LastJob, &im.Jobs, &im.Ended, &im.Nodes, &im.Effects, &h.LastEffect,
		&im.Tariffs, &h.Markets, &im.Quotes, &h.LastQuote} {
		if err := from.Decode(into); err != nil {
			return nil, err
		}
	}
	if version != 1 {
		return nil, fmt.Errorf("version %d is not 1", version)
	}
	for _, into := range []any{a, &more} { // the first images had neither
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			break
		}
		if err := from.Decode(into); err != nil {
			return nil, err
		}
	}
	im.Head = h
	if err := im.attach(a); err != nil {
		return nil, err
	}
	return im, im.supplement(more)
}

// attach puts what an annex has in its place.
func (im *Image) attach(a *annex1) error {
	im.Tokens, im.Returned, im.Head.MarketsVersion = a.Tokens, a.Returned, a.MarketsVersion
	jobs := im.numbered()
	for _, d := range a.Deposits {
		if jobs[d.Job] == nil {
			return fmt.Errorf("job %d with a deposit is missing", d.Job)
		}
		jobs[d.Job].Deposit = d.Deposit
	}
	for _, v := range a.Visits {
		if jobs[v.Job] == nil {
			return fmt.Errorf("job %d of site %s is missing", v.Job, v.Home)
		}
		jobs[v.Job].Visit = &Visit{messages.Visit{Home: v.Home, Job: v.Number}, v.Authorisation, v.Until}
	}
	for i := range im.Nodes {
		if n := &im.Nodes[i].Node; i < len(a.MostSuspended) {
			n.MostSuspended = a.MostSuspended[i]
		}
		if n := &im.Nodes[i].Node; i < len(a.Left) {
			n.Left = a.Left[i]
		}
	}
	for _, m := range a.Notes {
		for _, n := range m.Notes {
			im.Notes = append(im.Notes, noteImage{m.Market, n})
		}
	}
	if len(a.Markets) > 0 {
		var whole Apply
		if err := messages.Unmarshal(a.Markets, messages.Msgpack, &whole); err != nil {
			return err
		}
		im.Head.Markets = whole.Markets
	}
	im.RemoteJobs = make([]RemoteJob, len(a.RemoteJobs))
	for i, data := range a.RemoteJobs {
		if err := messages.Unmarshal(data, messages.Msgpack, &im.RemoteJobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// supplement puts what a supplement has in its place.
func (im *Image) supplement(data []byte) error {
	var s supplement1
	if err := messages.Unmarshal(data, messages.Msgpack, &s); err != nil {
		return err
	}
	for _, h := range s.Health {
		if int(h.Node) >= len(im.Nodes) {
			return fmt.Errorf("the health of node %d of %d", h.Node, len(im.Nodes))
		}
		im.Nodes[h.Node].Node.Health = h.Health
	}
	jobs := im.numbered()
	for i := range s.Doubts {
		d := &s.Doubts[i]
		j := jobs[d.Task.Job]
		if j == nil {
			return fmt.Errorf("job %d with a doubt is missing", d.Task.Job)
		}
		j.doubt(d)
	}
	return nil
}

// numbered are the jobs of the image by number.
func (im *Image) numbered() map[messages.JobID]*Job {
	out := make(map[messages.JobID]*Job, len(im.Jobs))
	for i := range im.Jobs {
		out[im.Jobs[i].ID] = im.Jobs[i]
	}
	return out
}
