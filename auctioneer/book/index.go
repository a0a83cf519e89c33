package book

import "github.com/candor-grid/candor/messages"

// index gives every job its number, also a job that runs at another site. It finds jobs by account, and by account and
// key.
type index struct {
	lastJob messages.JobID
	backup  messages.Time              // start of the backup that was restored last; 0 means that no backup was restored
	keys    map[string]messages.JobID  // the key of the map is owned(account, key)
	pending map[messages.Name]int      // by account: number of jobs that have not ended
	listed  map[messages.Name]*Numbers // jobs of each account; "" means all jobs; no set is empty
}

// renumber skips the numbers of jobs that the restore of a backup may have lost. A second call changes nothing.
func (x *index) renumber(c *Restored) {
	if c.Backup > x.backup {
		x.backup, x.lastJob = c.Backup, max(x.lastJob, c.Last)
	}
}

// find returns the number of the job that an account submitted under a key, or 0.
func (x *index) find(account messages.Name, key string) messages.JobID {
	return x.keys[owned(account, key)]
}

// number gives the next number to a job that enters the book, and adds the job to the index.
func (x *index) number(account messages.Name, key string) messages.JobID {
	x.enter(account, key, x.next(), true)
	return x.lastJob
}

func (x *index) next() messages.JobID {
	x.lastJob++
	return x.lastJob
}

// skip reserves the numbers of the further elements of an array.
func (x *index) skip(elements int) { x.lastJob += messages.JobID(elements - 1) }

// enter adds a job whose number is the highest so far.
func (x *index) enter(account messages.Name, key string, id messages.JobID, active bool) {
	x.recall(account, key, id)
	x.list(account, id, active)
}

func (x *index) list(account messages.Name, id messages.JobID, active bool) {
	for _, name := range []messages.Name{account, ""} {
		if x.listed[name] == nil {
			x.listed[name] = newNumbers()
		}
		x.listed[name].add(id)
	}
	if active {
		x.count(account, 1)
	}
}

// shorten replaces the job's key in the index by the copy of the key inside the packed job's bytes. The key is then in
// memory only once.
func (x *index) shorten(j *Job, packed string) {
	if packed != "" {
		x.drop(j.Account, j.Key)
		x.keys[keyOf(packed, j.Account, j.Key)] = j.ID
	}
}

func (x *index) remove(account messages.Name, key string, id messages.JobID) {
	x.drop(account, key)
	x.unlist(account, id)
}

func (x *index) drop(account messages.Name, key string) { delete(x.keys, owned(account, key)) }

// recall adds only the key of a job to the index, and does not add the job to the lists.
func (x *index) recall(account messages.Name, key string, id messages.JobID) {
	x.keys[owned(account, key)] = id
}

func (x *index) count(account messages.Name, change int) {
	if x.pending[account] += change; x.pending[account] == 0 {
		delete(x.pending, account)
	}
}

func (x *index) unlist(account messages.Name, id messages.JobID) {
	for _, name := range []messages.Name{account, ""} {
		if n := x.listed[name]; n != nil {
			if n.remove(id); n.count == 0 {
				delete(x.listed, name)
			}
		}
	}
}
