package executor

import (
	"context"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// Owner returns the account of a job that ran here.
func (k *Client) Owner(job messages.JobID) (messages.Name, error) {
	r, err := k.ask(context.Background(), &frame{Kind: owner,
		Logs: &agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: job}}}})
	if err != nil {
		return "", err
	}
	return r.Name, nil
}

// ReadLog returns a piece of the output of an attempt.
func (k *Client) ReadLog(ctx context.Context, request agent.LogsRequest) (agent.LogsReply, error) {
	r, err := k.ask(ctx, &frame{Kind: logs, Logs: &request})
	if err != nil || r.Reply == nil {
		return agent.LogsReply{}, err
	}
	return *r.Reply, nil
}

// Stream answers a request of a stream's client.
func (k *Client) Stream(ctx context.Context, request agent.StreamRequest) (agent.StreamReply, error) {
	r, err := k.ask(ctx, &frame{Kind: stream, Stream: &request})
	if err != nil || r.Streamed == nil {
		return agent.StreamReply{}, err
	}
	return *r.Streamed, nil
}

func (k *Client) ask(ctx context.Context, f *frame) (*frame, error) {
	answer := make(chan *frame, 1)
	k.mu.Lock()
	k.numbers++
	f.Number = k.numbers
	k.questions[f.Number] = answer
	sent := k.send(f)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.questions, f.Number)
	}()
	if !sent {
		return nil, messages.Errorf(messages.Unavailable, "the node's executor is not there; ask again")
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return nil, r.Error
		}
		return r, nil
	case <-ctx.Done():
	case <-k.life.Done():
	}
	return nil, messages.Errorf(messages.Unavailable, "the node's executor did not answer in time; ask again")
}
