package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// SendFile sends a file to a depot, unless the depot already has it. The verb in the argument `subject` must be put or
// give. The result says whether the file was sent. An agent sets the argument `attempt` to its task's attempt; a user
// leaves it empty. If ctx has no deadline, each piece may take [RequestTimeout].
func SendFile(ctx context.Context, b Bus, subject string, attempt messages.Attempt, f jobmsg.File, from io.ReaderAt) (sent bool, err error) {
	request := jobmsg.PutRequest{Digest: f.Digest, Size: f.Size, Attempt: attempt}
	reply, err := Call[jobmsg.PutReply](ctx, b, subject, request)
	if err != nil || reply.Done {
		return false, err
	}
	piece := make([]byte, min(jobmsg.PieceSize, f.Size))
	for request.Offset < f.Size {
		request.Data = piece[:min(jobmsg.PieceSize, f.Size-request.Offset)]
		n, err := from.ReadAt(request.Data, request.Offset)
		if err != nil && !(errors.Is(err, io.EOF) && n == len(request.Data)) {
			return true, messages.Errorf(messages.Invalid, "file %s: cannot be read to its end; perhaps the file changed: %v", f.Name, err)
		}
		if reply, err = Call[jobmsg.PutReply](ctx, b, subject, request); err != nil || reply.Done {
			return true, err
		}
		if reply.Next != request.Offset+int64(n) {
			return true, messages.Errorf(messages.Internal, "file %s: the depot asks for byte %d after a piece that begins at byte %d", f.Name, reply.Next, request.Offset)
		}
		request.Offset = reply.Next
	}
	return true, messages.Errorf(messages.Internal, "file %s: the whole file was sent, and the depot asks for more bytes", f.Name)
}

// ReceiveFile reads a file from a depot and checks its size and digest. The verb in the argument `subject` must be get
// or take. After an error, the written content is not valid.
func ReceiveFile(ctx context.Context, b Bus, subject string, attempt messages.Attempt, f jobmsg.File, to io.Writer) error {
	return receiveFile(ctx, b, subject, jobmsg.GetRequest{Digest: f.Digest, Attempt: attempt}, f, to)
}

// ReceiveFileOf is [ReceiveFile] for a user or operator who reads an output file of an account's job.
func ReceiveFileOf(ctx context.Context, b Bus, subject string, account messages.Name, attempt messages.Attempt, f jobmsg.File, to io.Writer) error {
	return receiveFile(ctx, b, subject, jobmsg.GetRequest{Digest: f.Digest, Attempt: attempt, Account: account}, f, to)
}

func receiveFile(ctx context.Context, b Bus, subject string, request jobmsg.GetRequest, f jobmsg.File, to io.Writer) error {
	sum := sha256.New()
	for {
		reply, err := Call[jobmsg.GetReply](ctx, b, subject, request)
		if err != nil {
			return err
		}
		if want := min(jobmsg.PieceSize, f.Size-request.Offset); reply.Size != f.Size || int64(len(reply.Data)) != want {
			return messages.Errorf(messages.Internal, "file %s: the depot has %d of the file's %d bytes", f.Name, reply.Size, f.Size)
		}
		sum.Write(reply.Data)
		if _, err := to.Write(reply.Data); err != nil {
			return messages.Errorf(messages.Unavailable, "file %s: cannot be written: %v", f.Name, err)
		}
		if request.Offset += int64(len(reply.Data)); request.Offset >= f.Size {
			break
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.Digest {
		return messages.Errorf(messages.Internal, "file %s: the received file has the SHA-256 %s, not %s", f.Name, got, f.Digest)
	}
	return nil
}

// Digest returns the size and digest of a file's content. It returns TooLarge above [job.MaxFile].
func Digest(name string, from io.Reader) (jobmsg.File, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(from, jobmsg.MaxFile+1))
	switch {
	case err != nil:
		return jobmsg.File{}, messages.Errorf(messages.Invalid, "%s: cannot be read: %v", name, err)
	case n > jobmsg.MaxFile:
		return jobmsg.File{}, messages.Errorf(messages.TooLarge, "%s: is above the limit of %d MiB for a file of a job", name, jobmsg.MaxFile>>20)
	}
	return jobmsg.File{Name: name, Size: n, Digest: hex.EncodeToString(sum.Sum(nil))}, nil
}
