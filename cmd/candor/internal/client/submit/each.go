package submit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// maxTogether is the largest size of several jobs in one request, in bytes. NATS servers accept more by default.
const maxTogether = 768 << 10

type member struct {
	path    string
	job     *jobfile.Job
	request *job.SubmitRequest // nil means that the job was refused before it was sent
	reply   job.SubmitReply
	err     error // why the job was refused
}

type batch struct {
	*cli.App
	sub     *submission
	key     string          // the keys of the jobs are derived from this key
	named   map[string]int  // number of times that each path was named so far
	sent    map[string]bool // inputs that the site has, by their digests
	session *cli.Session    // nil means not connected yet
	members []*member
}

// submitEach submits a job for each of several files, and follows the jobs if the user asks for that.
func submitEach(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	paths, err := pathsOf(a, sub, args)
	if err != nil {
		return err
	}
	b := &batch{App: a, sub: sub, key: cmp.Or(sub.key, rand.Text()), named: map[string]int{}, sent: map[string]bool{}}
	defer b.close()
	var part []*member
	size := 0
	for _, path := range paths {
		m := b.read(ctx, path)
		n, err := sizeOf(m.request)
		if err != nil {
			m.request, m.err = nil, err
		}
		if len(part) == job.MaxSubmitted || len(part) > 0 && size+n > maxTogether {
			if err := b.submit(ctx, part); err != nil {
				return err
			}
			part, size = nil, 0
		}
		part, size = append(part, m), size+n
	}
	if err := b.submit(ctx, part); err != nil {
		return err
	}
	return b.finish(ctx)
}

// pathsOf returns the names of the files to submit: the arguments or, with the argument "-", the lines of standard
// input.
func pathsOf(a *cli.App, sub *submission, args []string) (paths []string, err error) {
	switch {
	case sub.wrap != "":
		return nil, cli.Usagef("--each: needs the names of files, and cannot be used with --wrap")
	case len(args) > 0 && args[0] != "-":
		paths = args
	case len(args) > 1:
		return nil, cli.Usagef("--each: - reads the names of the files from standard input: leave %q out", args[1])
	case terminal.IsTerminal(a.In):
		return nil, cli.Usagef("--each: name the files")
	default:
		lines := bufio.NewScanner(a.Input())
		for lines.Scan() {
			paths = append(paths, lines.Text())
		}
		if err := lines.Err(); errors.Is(err, context.Canceled) {
			return nil, err
		} else if err != nil {
			return nil, cli.Usagef("%s: %v", standardInput, err)
		}
	}
	for i, path := range paths {
		if strings.TrimSpace(path) == "" || path == "-" {
			return nil, cli.Usagef("--each: file %d, %q, is not the name of a file", i+1, path)
		}
	}
	if len(paths) == 0 {
		return nil, cli.Usagef("--each: standard input names no file")
	}
	return paths, nil
}

func (b *batch) read(ctx context.Context, path string) *member {
	m := &member{path: path}
	if m.job, m.err = readFile(b.App, b.sub, path, nil); m.err != nil {
		m.err = unnamed(path, m.err)
		return m
	}
	m.job.Typed = "candor submit: " + terminal.Safe(path)
	if asksSite(m.job) {
		if m.err = b.connect(m.job); m.err == nil {
			m.err = suit(ctx, b.session, m.job)
		}
	}
	if m.err == nil {
		m.err = AssumeBudget(b.App, m.job)
	}
	if m.err == nil {
		m.request, m.err = prepare(b.App, m.job, b.keyOf(path), b.sub.dryRun)
	}
	return m
}

// unnamed removes the file's name from an error, because the name is already printed before it.
func unnamed(path string, err error) error {
	if wire, ok := errors.AsType[*messages.Error](err); ok {
		return &messages.Error{Kind: wire.Kind, Op: wire.Op, Message: strings.TrimPrefix(wire.Message, path+": ")}
	}
	return err
}

// keyOf returns the idempotency key of the job in a file. The key depends only on the batch's key, the path, and how
// often the command named this path before. So a repeated command makes the same keys, even if it names more files.
func (b *batch) keyOf(path string) string {
	b.named[path]++
	digest := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", b.key, path, b.named[path]))
	return hex.EncodeToString(digest[:16])
}

// sizeOf returns the size of a job in a request, in bytes.
func sizeOf(r *job.SubmitRequest) (int, error) {
	if r == nil {
		return 0, nil
	}
	data, err := wire.Marshal(&r.Spec, wire.Msgpack)
	return len(data) + len(r.Key), err
}

// submit sends the jobs of some files and shows each result. If the result of a job stays unknown, submit returns an
// error.
func (b *batch) submit(ctx context.Context, part []*member) error {
	b.members = append(b.members, part...)
	var together []*member
	for _, m := range part {
		if m.request == nil {
			continue
		}
		if err := b.connect(m.job); err != nil {
			return err
		}
		if m.err = sendInputs(ctx, b.session, m.job, m.request, b.sent); m.err != nil {
			// the inputs of this job could not be sent, so the job is not submitted
		} else if m.job.Site == "" {
			together = append(together, m)
		} else { // jobs for other sites are submitted one by one
			m.reply, m.err = send(ctx, b.App, b.session, m.job, m.request)
		}
		if messages.KindOf(m.err).Retriable() {
			return b.unknown(m.err)
		}
	}
	if err := b.sendTogether(ctx, together); err != nil {
		return b.unknown(err)
	}
	return b.show(part)
}

func (b *batch) connect(job *jobfile.Job) (err error) {
	if b.session == nil {
		b.Flags.Destination = job.Site
		b.session, err = b.Dial(false)
	}
	return err
}

func (b *batch) close() {
	if b.session != nil {
		b.session.Bus.Close()
	}
}

func (b *batch) sendTogether(ctx context.Context, part []*member) error {
	if len(part) == 0 {
		return nil
	}
	request := job.SubmitRequest{DryRun: b.sub.dryRun}
	for _, m := range part {
		request.Jobs = append(request.Jobs, job.NewJob{Key: m.request.Key, Spec: m.request.Spec})
	}
	reply, err := cli.Call[job.SubmitReply](ctx, b.session, messages.Auctioneer, messages.VerbSubmit, &request)
	if err == nil && len(reply.Jobs) != len(part) {
		err = messages.Errorf(messages.Internal, "the site answered for %d of %d jobs", len(reply.Jobs), len(part))
	}
	if err != nil {
		return err
	}
	for i, m := range part {
		o := &reply.Jobs[i]
		m.reply = job.SubmitReply{Job: o.Job, Market: o.Market, Payer: o.Payer, Held: o.Held, Tasks: o.Tasks, Warnings: o.Warnings}
		switch {
		case o.Error == nil:
		case refusesMail(m.job, o.Error):
			if m.reply, m.err = send(ctx, b.App, b.session, m.job, m.request); messages.KindOf(m.err).Retriable() {
				return m.err
			}
		default:
			m.err = o.Error
		}
	}
	return nil
}

// unknown adds advice to an error after which it is unknown which jobs were submitted: how to repeat the command so
// that no job is submitted twice.
func (b *batch) unknown(err error) error {
	if !messages.KindOf(err).Retriable() {
		return err
	}
	return messages.Errorf(messages.KindOf(err), "%s; perhaps jobs were submitted: repeat the command with --key %s, which cannot submit them twice",
		messages.Detail(err), b.key)
}

// show prints the results. Accepted jobs go to standard output.
func (b *batch) show(part []*member) error {
	p := b.Page(b.Out)
	for _, m := range part {
		if m.err != nil {
			b.Tell("candor submit: " + terminal.Safe(m.path) + ": " + cli.Sentence(m.refusal()))
			continue
		}
		warn(b.App, m.job, m.reply.Warnings...)
		switch {
		case b.Flags.JSON && !b.sub.idOnly:
		case b.sub.idOnly && !b.sub.dryRun:
			p.Printf("%v\n", m.reply.Job)
		default:
			p.Printf("%s: ", terminal.Safe(m.path))
			writeSubmitted(p, m.reply, b.sub.dryRun)
		}
	}
	_, err := b.Out.Write(p.Bytes())
	return err
}

// refusal returns the site's error. It also names the line of the job file that is wrong.
func (m *member) refusal() error {
	if m.request == nil {
		return m.err
	}
	return refused(m.err, m.job, m.request.Key)
}

// finish waits for the jobs if the user asked for that. It returns the exit code of the first job that was refused or
// did not complete.
func (b *batch) finish(ctx context.Context) error {
	var awaited []messages.JobID
	for _, m := range b.members {
		if m.err == nil && m.job.Options.Wait && !b.sub.dryRun {
			awaited = append(awaited, m.reply.Job)
		}
	}
	var ended map[messages.JobID]job.JobSummary
	if len(awaited) > 0 {
		var err error
		if ended, err = jobs.WaitAll(ctx, b.App, b.session, awaited); err != nil {
			return err
		}
	} else if b.Flags.JSON && !b.sub.idOnly {
		if err := b.PrintJSON(b.outcomes()); err != nil {
			return err
		}
	}
	for _, m := range b.members {
		code := cli.CodeOK
		if m.err != nil {
			code = cli.ExitCode(m.err)
		} else if job, waited := ended[m.reply.Job]; waited {
			code = jobs.ExitCode(job)
		}
		if code != cli.CodeOK {
			return cli.ExitStatus(code)
		}
	}
	return nil
}

func (b *batch) outcomes() (all job.SubmitReply) {
	for _, m := range b.members {
		r := &m.reply
		o := job.SubmitOutcome{Job: r.Job, Market: r.Market, Payer: r.Payer, Held: r.Held, Tasks: r.Tasks, Warnings: r.Warnings}
		if m.err != nil {
			o.Error = messages.AsError(messages.VerbSubmit, m.refusal())
			if o.Error.Kind == messages.Internal && cli.ExitCode(m.err) == cli.CodeUsage { // for example, a file is missing
				o.Error.Kind = messages.Invalid
			}
		}
		all.Jobs = append(all.Jobs, o)
	}
	return all
}
