package messages

import "strings"

// Verbs of the auctioneer and of the bank about their replicas; of operators.
const (
	VerbReplicas = "replicas" // Empty → ReplicasReply
	VerbReplica  = "replica"  // ReplicaRequest → ReplicasReply
)

// ReplicaRequest adds a replica to a group, or removes one: one of the two. It
// may be repeated: what is done already is left as it is.
type ReplicaRequest struct {
	// Add is the identifier of a replica that runs, with an empty disk. It gets a
	// vote once it has all that the others have.
	Add string `json:"add,omitempty"`
	// Address is where the replica to add serves its group, host:port. Empty: the
	// others know it from their configuration.
	Address string `json:"address,omitempty"`
	Remove  string `json:"remove,omitempty"`
	// Force removes a replica also where the group can then lose fewer replicas
	// than before; never where it would lack a majority.
	Force bool `json:"force,omitempty"`
}

// maxAddresses bounds the addresses of a replica, in bytes.
const maxAddresses = 4096

// Validate reports the first thing wrong with a request.
func (r *ReplicaRequest) Validate() error {
	switch {
	case (r.Add == "") == (r.Remove == ""):
		return Errorf(Invalid, "add, remove: name one replica, to be added or to be removed")
	case len(r.Add) > 128 || len(r.Remove) > 128:
		return Errorf(TooLarge, "add, remove: the identifier of a replica has at most 128 bytes")
	case strings.ContainsRune(r.Add, '@'):
		return Errorf(Invalid, "add: %q: an identifier has no @", clip(r.Add))
	case r.Address != "" && r.Add == "":
		return Errorf(Invalid, "address: is of a replica to be added")
	case len(r.Address) > maxAddresses || r.Address != "" && !strings.Contains(r.Address, ":"):
		return Errorf(Invalid, "address: %q is not an address; write host:port", clip(r.Address))
	}
	return nil
}

// ReplicasReply lists the replicas of a group as its leader knows them.
type ReplicasReply struct {
	Actor    string         `json:"actor"`
	Replicas []ReplicaState `json:"replicas"` // by identifier
	// Spare is how many more replicas the group can lose and still work.
	Spare int `json:"spare"`
	// Applied is how far the leader's state goes in the log: it has all that was
	// answered before this was asked.
	Applied uint64 `json:"applied"`
}

// ReplicaState is one replica of a group.
type ReplicaState struct {
	ID      string `json:"id"`
	Leads   bool   `json:"leads"`
	Votes   bool   `json:"votes"`   // false: it has not caught up yet
	Answers bool   `json:"answers"` // the leader heard of it within the last moments
	Behind  uint64 `json:"behind"`  // log entries that it lacks, as far as the leader knows
	Address string `json:"address"` // with which it was added; empty: by configuration
	Weak    string `json:"weak"`    // why it should not lead, as a disk without room; empty: nothing
}
