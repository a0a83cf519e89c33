package jobfile

import (
	"slices"
	"strconv"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// An array whose elements need several nodes becomes one job for each element, because a stage can have only one gang
// (tasks that start together). Two labels mark the elements. The number of the array is the number of its first job, as
// under Slurm.
const (
	arrayLabel = "slurm-array" // number of the array; in the first job, whose number is not known yet, the label is firstOfArray
	indexLabel = "slurm-index"

	firstOfArray = "first"
)

// MaxElements is the largest number of elements of an array of jobs on several nodes. A job that waits for the array
// waits for each of its elements, and one job can wait for at most this many jobs.
const MaxElements = job.MaxDependencies

// split has an array whose elements need several nodes each. Each element becomes a job of its own.
type split struct {
	indices job.Array                // nil means the job is not such an array
	most    int                      // how many elements may run at the same time; 0 means no bound
	after   map[int64]messages.JobID // by index of an element: the job that it waits for; nil means none
	// The following fields are set if this job is one element of an array:
	element bool
	index   int64
	first   messages.JobID // 0 means this job is the first
}

// Splits returns the indices of an array whose elements become separate jobs. For other jobs, it returns nil.
func (job *Job) Splits() job.Array {
	if job.split.element {
		return nil
	}
	return job.split.indices
}

// splitArray handles an array whose elements need several nodes, and will be submitted as separate jobs. It removes the
// array from the job's stage, and keeps its indices in job.split.
func (job *Job) splitArray() error {
	s := &job.Spec.Stages[0]
	if n := s.Array.Count(); n > MaxElements {
		return messages.Errorf(messages.TooLarge, "--array: has %d elements, and each would be a job on several nodes: at most %d are possible in one array", n, MaxElements)
	}
	job.split = split{indices: s.Array, most: s.MaxRunning}
	s.Array, s.MaxRunning = nil, 0
	return nil
}

// Element returns the job for the next element of an array, with an equal part of the array's budget. [Job.Splits] must
// not return nil. The argument `earlier` has the job numbers of all elements before this one.
func (job *Job) Element(earlier []messages.JobID) (*Job, error) {
	e, n, at := *job, job.split.indices.Count(), len(earlier)
	e.split.element, e.split.index = true, job.split.indices.At(int64(at))
	spec := &e.Spec
	if id := job.split.after[e.split.index]; id != 0 && !slices.Contains(spec.AfterOK, id) {
		spec.AfterOK = append(slices.Clone(spec.AfterOK), id)
	}
	spec.Stages = slices.Clone(spec.Stages)
	for _, amount := range []*messages.Credits{&spec.Budget, &spec.Value, &spec.Delay} {
		*amount /= messages.Credits(n)
	}
	array := firstOfArray
	if at > 0 {
		e.Warnings, e.split.first, array = nil, earlier[0], earlier[0].String()
	}
	spec.Labels = slices.Clone(spec.Labels).Set(arrayLabel, array).Set(indexLabel, strconv.FormatInt(e.split.index, 10))
	most := job.split.most
	if job.Names.Singleton {
		most = 1
	}
	if most > 0 && at >= most {
		if spec.AfterAny {
			return nil, messages.Errorf(messages.Invalid, "--array: jobs on several nodes cannot have both a limit of elements that run at once (%%) and a dependency with ?: leave one of the two out")
		}
		spec.AfterJobs = append(slices.Clone(spec.AfterJobs), earlier[at-most])
	}
	return &e, nil
}

// AfterElements makes a job wait for the elements of an array of jobs on several nodes. If the job is such an array
// too, each element waits only for the element with the same index.
func (job *Job) AfterElements(elements []job.JobSummary) error {
	pairs := map[int64]messages.JobID{}
	for i := range elements {
		_, index, _ := ElementOf(&elements[i])
		pairs[index] = elements[i].Job
		if job.split.indices == nil {
			job.Spec.AfterOK = append(job.Spec.AfterOK, elements[i].Job)
		}
	}
	for index := range job.split.indices.Indices {
		if pairs[index] == 0 {
			return messages.Errorf(messages.Invalid, "--dependency: array %v has no element %d: both arrays must have the same indices", elements[0].Job, index)
		}
		job.split.after = pairs
	}
	return nil
}

// ElementOf returns the array and the index of a job. The boolean result is true for an element of an array of jobs on
// several nodes.
func ElementOf(j *job.JobSummary) (array messages.JobID, index int64, is bool) {
	of, _ := j.Labels.Get(arrayLabel)
	text, _ := j.Labels.Get(indexLabel)
	index, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if of == firstOfArray {
		return j.Job, index, true
	}
	n, err := strconv.ParseUint(of, 10, 64)
	return messages.JobID(n), index, err == nil
}

// ElementsAfter returns the label that selects all elements of an array except the first one.
func ElementsAfter(first messages.JobID) string { return arrayLabel + "=" + first.String() }

func (job *Job) indices() job.Array {
	if job.split.element {
		return job.split.indices
	}
	return job.Spec.Stages[0].Array
}

// index returns the index of an array's element for a shell script: a number or a variable, as text to be put within
// double quotes.
func (job *Job) index() string {
	if job.split.element {
		return strconv.FormatInt(job.split.index, 10)
	}
	return "$CANDOR_ARRAY_INDEX"
}

// arrayNumber returns the number of the array for a shell script, as text to be put within double quotes.
func (job *Job) arrayNumber() string {
	if job.split.first != 0 {
		return job.split.first.String()
	}
	return "$CANDOR_JOB"
}
