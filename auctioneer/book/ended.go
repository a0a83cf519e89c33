package book

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/candor-grid/candor/messages/wire"
)

// Encode returns a record in the encoding of an image.
func (e Ended) Encode() (out []byte, err error) {
	im := Image{}
	if e.Job != nil {
		im.Jobs = []*Job{e.Job}
	} else {
		im.RemoteJobs = []RemoteJob{*e.Remote}
	}
	im.elements(func(one Image) bool {
		var data []byte
		if data, err = wire.Marshal(&one, wire.Msgpack); err == nil {
			out = append(binary.AppendUvarint(out, uint64(len(data))), data...)
		}
		return err == nil
	})
	return out, err
}

// DecodeEnded decodes a record that [Ended.Encode] wrote.
func DecodeEnded(data []byte) (e Ended, err error) {
	im := Image{Head: new(imageHead)}
	for r := bufio.NewReader(bytes.NewReader(data)); ; {
		if _, err := r.Peek(1); err != nil {
			break
		}
		var one Image
		if err := readRecord(r, &one); err != nil {
			return e, err
		}
		if err := im.add(&one); err != nil {
			return e, err
		}
	}
	switch {
	case len(im.Jobs) == 1:
		im.Jobs[0].Kept.shareDetails()
		return Ended{Job: im.Jobs[0]}, nil
	case len(im.RemoteJobs) == 1:
		return Ended{Remote: &im.RemoteJobs[0]}, nil
	}
	return e, fmt.Errorf("a record of %d jobs", len(im.Jobs)+len(im.RemoteJobs))
}
