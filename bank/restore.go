package bank

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// Restore replaces the ledger and the clearing by an image. Until it has finished, queries read the old ledger and
// clearing.
//
// Restore does not check again the records of the present state, if the image continues this state. Otherwise it looks
// for a kept image that the new image continues, and does not check the records of the kept image again. If there is no
// such image, Restore checks every record.
func (m *machine) Restore(r io.Reader) error {
	image, err := io.ReadAll(r) // the image is read again if it does not continue checked records
	if err != nil {
		return err
	}
	for _, known := range m.known() {
		err := m.restore(image, known)
		if err == nil || m.archive.life.Err() != nil {
			return err
		}
		m.archive.config.Log.Warn("checking the whole journal, because the part that was checked before cannot be used", zap.Error(err))
	}
	return m.restore(image, nil)
}

// This method returns images that this replica has checked. Usually this is one image, which is made from the present
// state. If that is not possible, these are the images in the replica's directory, the newest first.
func (m *machine) known() [][]byte {
	log := m.archive.config.Log
	if m.root == nil {
		return nil
	}
	if now := m.Capture().(*image); now.Records() > 0 {
		var out bytes.Buffer
		_, err := now.clearing.WriteTo(&out)
		if err == nil {
			_, err = now.Image.WriteTo(&out)
		}
		if err == nil {
			return [][]byte{out.Bytes()}
		}
		log.Warn("cannot begin the check of the journal with the present state", zap.Error(err))
	}
	if m.archive.checked == nil {
		return nil
	}
	images, err := m.archive.checked.Images()
	if err != nil {
		log.Warn("cannot read the stored image of the checked journal", zap.Error(err))
	}
	if len(images) == 0 {
		log.Info("this replica has no stored image of a checked journal: it checks the whole journal")
	}
	return images
}

// restore replaces the ledger and the clearing by an image. The argument `known` is an image that was checked before;
// if it is nil, every record is checked.
func (m *machine) restore(image, known []byte) error {
	freshLedger, freshClearing := m.open()
	r := bytes.NewReader(image)
	if err := freshClearing.Restore(r); err != nil {
		return err
	}
	check := ledger.Checking{Each: m.progress()}
	var derived *clearing.State
	check.Settles = func(l *ledger.Ledger) ledger.Settler {
		if derived == nil {
			derived = clearing.New(m.site, l, proof.Verified)
		}
		return derived
	}
	if known != nil {
		var err error
		if check.Known, derived, err = m.load(known); err != nil {
			return err
		}
	}
	report, err := freshLedger.RestoreWith(r, check)
	if err != nil {
		return err
	}
	if derived != nil { // the clearing was derived with the ledger, because the site has keys
		if err := freshClearing.Differs(derived); err != nil {
			return err
		}
		m.archive.config.Log.Info("the journal is checked", zap.Uint64("records", freshLedger.Totals().Records), zap.Uint64("requests checked now", report.Requests), zap.Uint64("transfers checked now", report.Marked))
		m.archive.keep(image)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger, m.clearing = freshLedger, freshClearing
	m.time.Reached(m.ledger.Now(), false, false)
	return nil
}

// load returns the ledger and the clearing of an image that this replica has checked before.
func (m *machine) load(image []byte) (*ledger.Ledger, *clearing.State, error) {
	l := m.archive.ledger()
	c := clearing.New(m.site, l, proof.Verified)
	r := bytes.NewReader(image)
	if err := errors.Join(c.Restore(r), l.Restore(r)); err != nil {
		return nil, nil, err
	}
	l.Trust(m.root)
	return l, c, nil
}

// tellEvery is the time between two reports of a check's progress in the log.
const tellEvery = 10 * time.Second

// progress returns a function, which a check of the records calls before each record. The function logs the progress
// from time to time. It returns an error if the replica is being stopped.
func (m *machine) progress() func(number, count uint64) error {
	told := time.Now()
	return func(number, count uint64) error {
		if m.archive.life.Err() != nil {
			return messages.Errorf(messages.Unavailable, "the replica stops; %s of %s records of the journal were checked", grouped(number-1), grouped(count))
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			m.archive.config.Log.Info("checked " + grouped(number-1) + " of " + grouped(count) + " records of the journal")
		}
		return nil
	}
}

// grouped returns a number with commas, such as 954,148.
func grouped(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
