// SPDX-License-Identifier: Apache-2.0

// Package checkpoints finds the checkpoints of a training, and keeps the record of the ones that ranks reported, on the same volume.
package checkpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// maxRecord is the largest record that is read, and maxKept how many checkpoints it has.
const (
	maxRecord = 1 << 20
	maxKept   = 100
)

// A Record is what index 0 keeps in the folder of checkpoints, for a coordinator that starts again and for later runs.
type Record struct {
	// Run and Ledger of the run that wrote it last.
	Run    int             `json:"run"`
	Ledger protocol.Ledger `json:"ledger"`
	// Ended reports that the run has ended for good. A run of the same number is then one of another Training of the same name, and has
	// an account of its own.
	Ended bool `json:"ended,omitempty"`
	// Reported are the checkpoints that ranks reported, the newest last.
	Reported []crew.Checkpoint `json:"reported,omitempty"`
	// Discarded are checkpoints that are not used, because they may have the loss that is not a number.
	Discarded []Discard `json:"discarded,omitempty"`
}

// A Discard is of all checkpoints from a step on that were there at some time. What is written later under the same names is used.
type Discard struct {
	From  int64     `json:"from"`
	Until time.Time `json:"until"`
}

// Trim drops the oldest entries of a record that has grown.
func (r *Record) Trim() {
	r.Reported = r.Reported[max(0, len(r.Reported)-maxKept):]
	r.Discarded = r.Discarded[max(0, len(r.Discarded)-maxKept):]
}

// A Folder of checkpoints.
type Folder struct {
	// Dir is an absolute path.
	Dir string
	// Complete is the pattern of the file that only complete checkpoints have. Empty: only reported ones count.
	Complete string
	// Training names the record, so that two trainings in one folder do not mix theirs.
	Training string
	// Cycle and Former as in crew.Checkpoints.
	Cycle, Former int
}

// Of a plan that has checkpoints.
func Of(p crew.Plan) Folder {
	c := p.Checkpoints
	return Folder{Dir: c.Dir, Complete: c.Complete, Training: p.Training, Cycle: c.Cycle, Former: c.Former}
}

// ownPrefix begins the names of what Capstan itself has in a folder of checkpoints.
const ownPrefix = ".capstan-"

func (f Folder) file() string { return filepath.Join(f.Dir, ownPrefix+f.Training+".json") }

// Write a record as a whole or not at all, so that it outlasts the loss of power. Errors name the folder.
func (f Folder) Write(r Record) error {
	raw, err := json.Marshal(r)
	if err == nil {
		err = write(f.file(), raw)
	}
	if err != nil {
		return f.explain("write to", err)
	}
	return nil
}

func write(path string, content []byte) error {
	next := path + ".next"
	f, err := os.OpenFile(filepath.Clean(next), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o660) //nolint:gosec // G302, G304: pods share the folder by its group.
	if err != nil {
		return err
	}
	_, err = f.Write(append(content, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(next)) // What a full disk has of it is of no use.
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read the record. There may be none.
func (f Folder) read() (Record, error) {
	raw, err := os.ReadFile(filepath.Clean(f.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{Ledger: protocol.Ledger{Attempt: -1}}, nil
	}
	if err != nil {
		return Record{}, err
	}
	if len(raw) > maxRecord {
		return Record{}, fmt.Errorf("%s is larger than %d bytes", f.file(), maxRecord)
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return Record{}, fmt.Errorf("%s is no record of checkpoints: %w; remove it", f.file(), err)
	}
	return r, nil
}

// explain an error of the folder, with the remedy if it is known.
func (f Folder) explain(verb string, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "; make room there"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = "; let the pods write there"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "; mount the volume of checkpoints there"
	}
	return fmt.Errorf("cannot %s the folder of checkpoints %s: %w%s", verb, f.Dir, err, remedy)
}

// A Found is what there is.
type Found struct {
	Record Record
	// Complete are the checkpoints that the pattern found.
	Complete []crew.Checkpoint
	// Gone are the reported checkpoints, by URI, that are not there or not complete.
	Gone []string
	// Shared is another training that uses the folder. Empty: there is none.
	Shared string
}

// Find what there is, and which of these reported checkpoints and the ones of the record are gone. A folder that does not exist is an
// error: no rank could write there.
func (f Folder) Find(reported []crew.Checkpoint) (Found, error) {
	if err := f.begin(); err != nil {
		return Found{}, f.explain("make", err)
	}
	if info, err := os.Stat(f.Dir); err != nil {
		return Found{}, f.explain("read", err)
	} else if !info.IsDir() {
		return Found{}, f.explain("read", syscall.ENOTDIR)
	}
	record, err := f.read()
	if err != nil {
		return Found{}, f.explain("read", err)
	}
	complete, err := f.complete()
	if err != nil {
		return Found{}, f.explain("read", err)
	}
	found := Found{Record: record, Complete: complete, Shared: f.shared()}
	for _, c := range Merge(reported, record.Reported) {
		if !f.there(c.URI, complete) {
			found.Gone = append(found.Gone, c.URI)
		}
	}
	return found, nil
}

// shared is another training that uses the folder: its record says that its run has not ended.
func (f Folder) shared() string {
	files, err := fs.Glob(os.DirFS(f.Dir), ownPrefix+"*.json")
	if err != nil {
		return ""
	}
	for _, file := range files {
		other := strings.TrimSuffix(strings.TrimPrefix(file, ownPrefix), ".json")
		if other == f.Training {
			continue
		}
		if r, err := (Folder{Dir: f.Dir, Training: other}).read(); err == nil && r.Run > 0 && !r.Ended {
			return other
		}
	}
	return ""
}

// modified is when a file changed last, in the precision of JSON.
func modified(info fs.FileInfo) time.Time { return info.ModTime().UTC().Truncate(time.Millisecond) }
