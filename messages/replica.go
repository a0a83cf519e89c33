package messages

import "strings"

// An operator sends these verbs to the auctioneer or the bank, to see or change its replicas.
const (
	VerbReplicas = "replicas" // Empty → ReplicasReply
	VerbReplica  = "replica"  // ReplicaRequest → ReplicasReply
)

// ReplicaRequest adds a replica to a group, removes one, or raises the level of the group. It may be repeated: finished
// steps have no effect.
type ReplicaRequest struct {
	// Add is the identifier of a running replica with an empty disk. It gets a vote when it has all data of the other
	// replicas.
	Add string `json:"add,omitempty"`
	// Address is where the new replica serves its group, as host:port. If it is empty, the other replicas have it in
	// their configuration.
	Address string `json:"address,omitempty"`
	Remove  string `json:"remove,omitempty"`
	// Force removes a replica even if the group can then lose fewer replicas than before. It never leaves a group
	// without a majority.
	Force bool `json:"force,omitempty"`
	// Usually the replicas agree on a higher level a day after all of them can work with it. If Raise is true, they
	// agree at once on the highest level that all can work with. After that, the previous release can no longer be
	// started.
	Raise bool `json:"raise,omitempty"`
}

// maxAddresses bounds the addresses of a replica, in bytes.
const maxAddresses = 4096

// Validate returns an error for the first fault of a request.
func (r *ReplicaRequest) Validate() error {
	switch {
	case r.Raise && (r.Add != "" || r.Remove != ""):
		return Errorf(Invalid, "raise: cannot go together with the fields add and remove; send one of the three fields")
	case r.Raise:
		return nil
	case (r.Add == "") == (r.Remove == ""):
		return Errorf(Invalid, "add, remove: name one replica, to be added or to be removed")
	case len(r.Add) > 128 || len(r.Remove) > 128:
		return Errorf(TooLarge, "add, remove: the identifier of a replica has at most 128 bytes")
	case strings.ContainsRune(r.Add, '@'):
		return Errorf(Invalid, "add: %q: must not contain @", Clipped(r.Add))
	case r.Address != "" && r.Add == "":
		return Errorf(Invalid, "address: needs the field add; name the replica to be added, or leave the address out")
	case len(r.Address) > maxAddresses || r.Address != "" && !strings.Contains(r.Address, ":"):
		return Errorf(Invalid, "address: %q is not an address; write host:port", Clipped(r.Address))
	}
	return nil
}

// ReplicasReply lists the replicas of a group, as the leader sees them.
type ReplicasReply struct {
	Actor    string         `json:"actor"`
	Replicas []ReplicaState `json:"replicas"` // by identifier
	// Spare is the number of further replicas that the group can lose without stopping its work. The group needs a
	// majority, and at least one replica that may lead.
	Spare int `json:"spare"`
	// Applied is the position of the leader's state in the log. All commands that were answered before this request
	// arrived are part of that state.
	Applied uint64 `json:"applied"`
	Level   int    `json:"level,omitempty"` // level that the replicas agreed on
}

// ReplicaState describes one replica of a group.
type ReplicaState struct {
	ID      string `json:"id"`
	Leads   bool   `json:"leads"`
	Votes   bool   `json:"votes"`   // false means that it has not caught up yet
	Answers bool   `json:"answers"` // the leader has recently heard from it
	Behind  uint64 `json:"behind"`  // number of log entries that it lacks, as far as the leader knows
	Address string `json:"address"` // address that was given when it was added; empty: the configuration has it
	Weak    string `json:"weak"`    // why it should not lead, for example a disk without room; empty means that it may
	// Level and Release describe the program that the replica runs. The replica reports them to the leader. Before the
	// first report, they are 0 and empty.
	Level   int    `json:"level,omitempty"`
	Release string `json:"release,omitempty"`
}

// Empty is the payload of a request without parameters.
type Empty struct{}

// StatusReply is the group of an actor as one replica sees it.
type StatusReply struct {
	Actor    string   `json:"actor"`
	Site     Name     `json:"site"`
	Replica  string   `json:"replica"`
	Leader   string   `json:"leader"`
	Term     uint64   `json:"term"`
	Applied  uint64   `json:"applied"`
	Replicas []string `json:"replicas"`
}
