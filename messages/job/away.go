package job

import "github.com/candor-grid/candor/messages"

// Away says at which other site a job of this site's user runs, and what is known about the job there.
type Away struct {
	Site    messages.Name `json:"site"`
	Phase   string        `json:"phase"`             // Authorising, Sending, There, Releasing, Ended
	Known   messages.Time `json:"known,omitempty"`   // when the other site last reported on the job; 0 means never
	Trouble string        `json:"trouble,omitempty"` // why the site cannot be asked now; "" means that it answers
	Chosen  string        `json:"chosen,omitempty"`  // why the auctioneer chose that site, if it did
}

// Visit identifies the job of another site that runs here.
type Visit struct {
	Home messages.Name  `json:"home"`
	Job  messages.JobID `json:"job"`
}

// String writes "west/17".
func (v Visit) String() string { return v.Home + "/" + v.Job.String() }
