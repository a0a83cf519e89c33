package job

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/candor-grid/candor/messages"
)

// Limits on the files that travel with a job: parameters, small data and results. Larger files belong on shared
// storage.
const (
	MaxFile      = 64 << 20  // bytes of one input or output
	MaxJobFiles  = 256 << 20 // bytes of all inputs of a job, or of all outputs of a task
	MaxInputs    = 256       // input files of one stage
	MaxPatterns  = 64        // output patterns of one stage
	MaxOutputs   = 1000      // files that a task leaves
	PieceSize    = 512 << 10 // bytes of a file in one message
	MaxFileName  = 1024      // bytes of a file's name
	digestLength = 64        // length of a digest: the hexadecimal digits of a SHA-256
)

// These are the verbs of the depot. The first three are for users, about their own files. The others are for agents,
// about a task that was granted to them.
const (
	VerbPut     = "put"     // PutRequest → PutReply
	VerbGet     = "get"     // GetRequest → GetReply
	VerbOutputs = "outputs" // OutputsRequest → OutputsReply
	VerbTake    = "take"    // GetRequest → GetReply: an input of the attempt's stage
	VerbGive    = "give"    // PutRequest → PutReply: for the attempt's owner
	VerbDeliver = "deliver" // DeliverRequest → Empty: the files that the attempt left
)

// With these verbs the depot of another site calls this depot. The caller's name is "$" and the name of the other site.
// A job is named by its number at its home site.
const (
	VerbPeerTake    = "peer-take"    // GetRequest → GetReply: an input of a job of this site that runs at the other site
	VerbPeerOutputs = "peer-outputs" // OutputsRequest → OutputsReply: files that tasks of the other site's job have left
	VerbPeerGet     = "peer-get"     // GetRequest → GetReply: one of the files that VerbPeerOutputs lists
)

// File is a file that travels with a job, identified by its content.
type File struct {
	Name   string `json:"name"`   // its path in the working directory, with "/" between directories
	Size   int64  `json:"size"`   // bytes
	Digest string `json:"digest"` // SHA-256 of the content, in lower-case hexadecimal digits
	// Executable is true if tasks may execute the file.
	Executable bool `json:"executable,omitempty"`
}

// PutRequest stores a piece of a file in the depot: the service that keeps the files of a site's tasks. A request
// without Data asks whether the depot has the file. Pieces come in order. Each begins at the position Next of the last
// reply.
type PutRequest struct {
	Digest  string           `json:"digest"`
	Size    int64            `json:"size"`             // bytes of the whole file
	Offset  int64            `json:"offset,omitempty"` // a multiple of PieceSize
	Data    []byte           `json:"data,omitempty"`   // PieceSize bytes, or the rest of the file
	Attempt messages.Attempt `json:"attempt"`          // set by agents; users leave it out
}

// PutReply has the position of the next piece. When the last piece has arrived, the depot has also checked the digest
// of the file.
type PutReply struct {
	Next int64 `json:"next"`
	Done bool  `json:"done"` // the depot has the file
}

// GetRequest reads a piece of a file.
type GetRequest struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset,omitempty"` // a multiple of PieceSize
	// An agent sets Attempt to the attempt that needs the file as an input. A user sets Attempt to the attempt that
	// left the file as an output. If the user does not set it, a file of a job at another site cannot be found.
	Attempt messages.Attempt `json:"attempt"`
	// Account is the owner of the file. Only operators may set it; "" means the caller.
	Account messages.Name `json:"account,omitempty"`
}

// GetReply is a piece of a file.
type GetReply struct {
	Size int64  `json:"size"` // bytes of the whole file
	Data []byte `json:"data"`
}

// DeliverRequest lists the files that an attempt left. The agent has stored them before.
type DeliverRequest struct {
	Attempt messages.Attempt `json:"attempt"`
	Files   []File           `json:"files"`
}

// OutputsRequest asks for the files that the tasks of one stage have left. The job must be the caller's.
type OutputsRequest struct {
	Job   messages.JobID `json:"job"`
	Stage uint32         `json:"stage,omitempty"` // the stage's position in the job
	From  uint32         `json:"from,omitempty"`  // first task index
	Limit int            `json:"limit,omitempty"` // number of tasks to examine; default 100, at most 1000
	// Account is the owner of the job. Only operators may set it; "" means the caller.
	Account messages.Name `json:"account,omitempty"`
}

// OutputsReply lists the tasks that left files, in the order of their indices.
type OutputsReply struct {
	Tasks []TaskOutputs `json:"tasks"`
	Next  uint32        `json:"next"` // the index of the first task that was not examined
}

// TaskOutputs lists the files that a task left.
type TaskOutputs struct {
	Attempt messages.Attempt `json:"attempt"`
	Files   []File           `json:"files"` // sorted by name
}

// Validate checks the fields of the request.
func (r *PutRequest) Validate() error {
	if err := checkDigest("digest", r.Digest); err != nil {
		return err
	}
	switch {
	case r.Size < 0:
		return messages.Errorf(messages.Invalid, "size: %d must not be negative", r.Size)
	case r.Size > MaxFile:
		return messages.Errorf(messages.TooLarge, "size: %d bytes are more than the limit of %d MiB for a file", r.Size, MaxFile>>20)
	case r.Offset < 0 || r.Offset%PieceSize != 0 || r.Offset > r.Size:
		return messages.Errorf(messages.Invalid, "offset: %d must be a multiple of %d within the file", r.Offset, PieceSize)
	}
	if n := min(PieceSize, r.Size-r.Offset); len(r.Data) > 0 && int64(len(r.Data)) != n {
		return messages.Errorf(messages.Invalid, "data: has %d bytes, but must have %d at this offset", len(r.Data), n)
	}
	return nil
}

// Validate checks the fields of the request.
func (r *GetRequest) Validate() error {
	if r.Offset < 0 || r.Offset%PieceSize != 0 || r.Offset > MaxFile {
		return messages.Errorf(messages.Invalid, "offset: %d must be a multiple of %d within the file", r.Offset, PieceSize)
	}
	return checkDigest("digest", r.Digest)
}

// Validate checks the fields of the request.
func (r *DeliverRequest) Validate() error {
	if len(r.Files) > MaxOutputs {
		return messages.Errorf(messages.TooLarge, "files: %d is above the limit of %d for a task; put them in an archive", len(r.Files), MaxOutputs)
	}
	return validateFiles("files", r.Files)
}

// Validate checks the fields of the request.
func (r *OutputsRequest) Validate() error {
	if r.Limit < 0 || r.Limit > 1000 {
		return messages.Errorf(messages.Invalid, "limit: %d must be 0 to 1000", r.Limit)
	}
	return nil
}

// Travels reports whether the stage's tasks have input or output files.
func (s *Stage) Travels() bool { return len(s.Inputs)+len(s.Outputs) > 0 }

func (s *Stage) validateFiles(path string) error {
	if len(s.Inputs) > MaxInputs {
		return messages.Errorf(messages.TooLarge, "%s.inputs: %d is above the limit of %d; put them in an archive", path, len(s.Inputs), MaxInputs)
	}
	if len(s.Outputs) > MaxPatterns {
		return messages.Errorf(messages.TooLarge, "%s.outputs: %d patterns are more than the limit of %d", path, len(s.Outputs), MaxPatterns)
	}
	if err := validateFiles(path+".inputs", s.Inputs); err != nil {
		return err
	}
	for i, pattern := range s.Outputs {
		if err := checkPattern(fmt.Sprintf("%s.outputs[%d]", path, i), pattern); err != nil {
			return err
		}
	}
	return nil
}

// Names must be unique, and no file may have the name of another file's directory.
func validateFiles(where string, files []File) error {
	total := int64(0)
	names := make(map[string]int, len(files))
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", where, i)
		if err := f.validate(at); err != nil {
			return err
		}
		if total += f.Size; total > MaxJobFiles {
			return messages.Errorf(messages.TooLarge, "%s: with this file, all inputs together have more than the limit of %d MiB", at, MaxJobFiles>>20)
		}
		if first, twice := names[f.Name]; twice {
			return messages.Errorf(messages.Invalid, "%s.name: %q is the name of %s[%d] too; give each file its own name", at, messages.Clipped(f.Name), where, first)
		}
		names[f.Name] = i
	}
	for i, f := range files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if k, isFile := names[dir]; isFile {
				return messages.Errorf(messages.Invalid, "%s[%d].name: %q needs a directory with the name of the file %s[%d]; rename one of the files", where, i, messages.Clipped(f.Name), where, k)
			}
		}
	}
	return nil
}

func (f *File) validate(at string) error {
	if err := CheckFileName(at+".name", f.Name); err != nil {
		return err
	}
	switch {
	case f.Size < 0:
		return messages.Errorf(messages.Invalid, "%s.size: %d must not be negative", at, f.Size)
	case f.Size > MaxFile:
		return messages.Errorf(messages.TooLarge, "%s: %q has %d bytes, more than the limit of %d MiB for a file", at, messages.Clipped(f.Name), f.Size, MaxFile>>20)
	}
	return checkDigest(at+".digest", f.Digest)
}

// A name must be the shortest path of a file below a working directory. CheckFileName returns an error for any other
// name.
func CheckFileName(at, name string) error {
	if err := messages.CheckLine(at, name, MaxFileName); err != nil {
		return err
	}
	if name == "" || name == "." || name[0] == '/' || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return messages.Errorf(messages.Invalid, "%s: %q must be a relative path within the working directory, without . or ..", at, messages.Clipped(name))
	}
	return nil
}

// checkPattern returns an error for a pattern that package path refuses, or that could match a file outside of the
// working directory.
func checkPattern(at, pattern string) error {
	if err := CheckFileName(at, pattern); err != nil {
		return err
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return messages.Errorf(messages.Invalid, "%s: %q is no pattern: use * and ? for parts of a name, [a-z] for one of several characters, and \\ before a character that stands for itself", at, messages.Clipped(pattern))
	}
	return nil
}

func checkDigest(at, digest string) error {
	odd := func(r rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, r) || unicode.IsUpper(r) }
	if len(digest) != digestLength || strings.ContainsFunc(digest, odd) {
		return messages.Errorf(messages.Invalid, "%s: %q must be a SHA-256, %d lower-case hexadecimal digits", at, messages.Clipped(digest), digestLength)
	}
	return nil
}

func (s *JobSpec) validateFiles() error {
	total, seen := int64(0), map[string]bool{}
	for i := range s.Stages {
		stage := &s.Stages[i]
		if stage.Travels() && s.Dir != "" {
			return messages.Errorf(messages.Invalid, "dir: %q: tasks with inputs or outputs run in a new directory of their own; leave the field dir out, or give --chdir=-", messages.Clipped(s.Dir))
		}
		for _, f := range stage.Inputs {
			if !seen[f.Digest] {
				seen[f.Digest] = true
				total += f.Size
			}
		}
	}
	if total > MaxJobFiles {
		return messages.Errorf(messages.TooLarge, "stages: their inputs have %d bytes, more than the limit of %d MiB for a job", total, MaxJobFiles>>20)
	}
	return nil
}
