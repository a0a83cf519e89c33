package depot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func (d *Depot) get(ctx context.Context, caller messages.Name, r jobmsg.GetRequest) (jobmsg.GetReply, error) {
	account, err := d.whose(caller, r.Account, zap.String("file", r.Digest))
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	if r.Attempt.Task.Job != 0 {
		if away, err := d.awayOf(ctx, account, r.Attempt.Task.Job); away != "" || err != nil {
			return d.getAway(ctx, away, &r, err)
		}
	}
	return d.read(ctx, account, &r)
}

func (d *Depot) put(ctx context.Context, account messages.Name, r jobmsg.PutRequest) (jobmsg.PutReply, error) {
	if err := r.Validate(); err != nil {
		return jobmsg.PutReply{}, err
	}
	b, err := d.bucket(ctx, account)
	if err != nil {
		return jobmsg.PutReply{}, err
	}
	size, at, err := stored(ctx, b, r.Digest)
	switch {
	case err == nil && size != r.Size:
		return jobmsg.PutReply{}, messages.Errorf(messages.Invalid, "size: the depot has a file with this digest, of %d bytes, not %d", size, r.Size)
	case err == nil && time.Since(at) < d.c.Retention/2:
		return jobmsg.PutReply{Next: size, Done: true}, nil
	case err != nil && messages.KindOf(err) != messages.NotFound:
		return jobmsg.PutReply{}, err
	case err == nil && spoils(ctx, b, &r):
		return jobmsg.PutReply{}, messages.Errorf(messages.Invalid, "data: differs at byte %d from the file with this digest; if the file changed, send the file again", r.Offset)
	}
	reply, err := keep(ctx, b, &r)
	d.metrics.took(&r, &reply, err)
	return reply, err
}

// spoils reports whether a new piece differs from the stored piece of a complete file, and so must not replace it.
func spoils(ctx context.Context, b bus.Objects, r *jobmsg.PutRequest) bool {
	if len(r.Data) == 0 {
		return false
	}
	kept, _, err := b.Get(ctx, pieceName(r.Digest, r.Offset))
	return err == nil && !bytes.Equal(kept, r.Data) && verify(ctx, b, r.Digest, r.Size) == nil
}

// keep stores a piece. After the last piece it records that the file is complete.
func keep(ctx context.Context, b bus.Objects, r *jobmsg.PutRequest) (jobmsg.PutReply, error) {
	if len(r.Data) == 0 && r.Size > 0 {
		return jobmsg.PutReply{}, nil
	}
	if len(r.Data) > 0 {
		if err := b.Put(ctx, pieceName(r.Digest, r.Offset), r.Data); err != nil {
			return jobmsg.PutReply{}, err
		}
	}
	next := r.Offset + int64(len(r.Data))
	if next < r.Size {
		return jobmsg.PutReply{Next: next}, nil
	}
	if err := verify(ctx, b, r.Digest, r.Size); err != nil {
		return jobmsg.PutReply{}, err
	}
	return jobmsg.PutReply{Next: next, Done: true}, b.Put(ctx, r.Digest, strconv.AppendInt(nil, r.Size, 10))
}

func verify(ctx context.Context, b bus.Objects, digest string, size int64) error {
	sum := sha256.New()
	for offset := int64(0); offset < size; offset += jobmsg.PieceSize {
		data, _, err := b.Get(ctx, pieceName(digest, offset))
		if messages.KindOf(err) == messages.NotFound && err != nil {
			return messages.Errorf(messages.Invalid, "offset: the piece at %d is missing; send the pieces in their order", offset)
		}
		if err != nil {
			return err
		}
		sum.Write(data)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return messages.Errorf(messages.Invalid, "digest: the received file has the SHA-256 %s, not %s; perhaps the file changed: send it again", got, digest)
	}
	return nil
}

// stored returns the size of a stored file, and the time at which it was stored.
func stored(ctx context.Context, b bus.Objects, digest string) (int64, time.Time, error) {
	text, at, err := b.Get(ctx, digest)
	if err != nil {
		return 0, at, err
	}
	size, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, at, messages.Errorf(messages.Internal, "the stored size of file %s is damaged", digest)
	}
	return size, at, nil
}

func (d *Depot) read(ctx context.Context, account messages.Name, r *jobmsg.GetRequest) (jobmsg.GetReply, error) {
	if err := r.Validate(); err != nil {
		return jobmsg.GetReply{}, err
	}
	b, err := d.bucket(ctx, account)
	if err != nil {
		return jobmsg.GetReply{}, err
	}
	size, _, err := stored(ctx, b, r.Digest)
	if err == nil && r.Offset >= size {
		return jobmsg.GetReply{Size: size}, nil
	}
	var data []byte
	if err == nil {
		data, _, err = b.Get(ctx, pieceName(r.Digest, r.Offset))
	}
	if err != nil && messages.KindOf(err) == messages.NotFound {
		err = messages.Errorf(messages.NotFound, "the depot has no file of digest %s for account %s; the depot keeps files for %v, unless they are damaged", r.Digest, account, messages.Duration(d.c.Retention))
	}
	d.metrics.sent.Add(float64(len(data)))
	return jobmsg.GetReply{Size: size, Data: data}, err
}

func pieceName(digest string, offset int64) string {
	return digest + "." + strconv.FormatInt(offset/jobmsg.PieceSize, 10)
}
