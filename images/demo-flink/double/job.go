// SPDX-License-Identifier: Apache-2.0

package double

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// running is the state of a job all of whose tasks run, as Flink names it.
const running = "RUNNING"

const (
	keys = 4
	// retained is how many checkpoints stay.
	retained = 2
)

// account is the state of the job.
type account struct {
	Next   int64       `json:"next"`
	Counts [keys]int64 `json:"counts"`
}

// A checkpoint that is complete.
type checkpoint struct {
	id    int64
	dir   string
	state account
	at    time.Time
}

// A savepoint that was requested.
type savepoint struct {
	location string
	failure  string
}

// A job counts while there are TaskManagers.
type job struct {
	options

	out         io.Writer
	id          string
	checkpoints string
	every       time.Duration

	mu           sync.Mutex
	state        string
	now          account
	began        time.Time
	lastID       int64
	taken        []checkpoint
	failed       *failed
	restarts     int
	exception    string
	exceptionAt  time.Time
	slots        map[int]int
	taskManagers int
	savepoints   map[string]savepoint
	done         chan struct{}
}

type failed struct {
	id  int64
	why string
	at  time.Time
}

// restore a state that another process left. It stays as it is.
func (j *job) restore(from string) error {
	if from == "" {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Clean(from), "_metadata"))
	if err != nil {
		return fmt.Errorf("cannot restore: %w", err)
	}
	if len(raw) <= 16 {
		return errors.New("cannot restore: the metadata is cut off")
	}
	var s account
	if err := json.Unmarshal(raw[16:], &s); err != nil {
		return fmt.Errorf("cannot restore: %w", err)
	}
	c := checkpoint{id: int64(binary.BigEndian.Uint64(raw[8:])), state: s, at: time.Now()} //nolint:gosec // Java has no unsigned numbers.
	j.now, j.lastID, j.taken = s, c.id, []checkpoint{c}
	return nil
}

// run until the job ends.
func (j *job) run() {
	next := time.Now()
	due := time.Now().Add(j.every)
	for {
		select {
		case <-j.done:
			return
		case <-time.After(time.Until(next)):
		}
		next = next.Add(j.pause)
		if late := time.Since(next); late > time.Second {
			next = time.Now()
		}
		j.mu.Lock()
		j.step()
		if j.state == running && !j.failing && time.Now().After(due) {
			due = time.Now().Add(j.every)
			j.checkpoint()
		}
		j.mu.Unlock()
	}
}

// step by one number, or start if there are TaskManagers now.
func (j *job) step() {
	switch {
	case j.state == "FINISHED":
	case j.state != running && j.taskManagers > 0:
		j.state, j.began = running, time.Now()
	case j.state != running:
	case j.taskManagers == 0:
		j.fail("org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id 1 is no longer reachable.")
	case j.failing && time.Since(j.began) > 200*time.Millisecond:
		j.fail("java.lang.IllegalStateException: this job is made to fail")
	case j.end > 0 && j.now.Next >= j.end:
		j.finish()
	default:
		n := j.now.Next
		j.now.Next++
		j.now.Counts[n%keys]++
		_, _ = fmt.Fprintf(j.out, "account %d %d\n", n, j.now.Counts[n%keys])
	}
}

// fail goes back to the last checkpoint.
func (j *job) fail(why string) {
	j.state, j.exception, j.exceptionAt = "RESTARTING", why, time.Now()
	j.restarts++
	j.now = account{}
	if len(j.taken) > 0 {
		j.now = j.taken[len(j.taken)-1].state
	}
}

// finish deletes checkpoints, as Flink does once a job has ended in good order.
func (j *job) finish() {
	j.state = "FINISHED"
	for _, c := range j.taken {
		if c.dir != "" {
			_ = os.RemoveAll(c.dir)
		}
	}
	close(j.done)
}

func (j *job) checkpoint() {
	j.lastID++
	dir := filepath.Join(j.checkpoints, j.id, "chk-"+strconv.FormatInt(j.lastID, 10))
	err := write(dir, j.lastID, j.now)
	if j.stuck {
		_ = os.Remove(filepath.Join(dir, "_metadata"))
		err = errors.New("Checkpoint expired before completing.") //nolint:revive,staticcheck // Flink's words.
	}
	if err != nil {
		j.failed = &failed{id: j.lastID, why: err.Error(), at: time.Now()}
		return
	}
	j.taken = append(j.taken, checkpoint{id: j.lastID, dir: dir, state: j.now, at: time.Now()})
	for len(j.taken) > retained {
		if old := j.taken[0].dir; old != "" {
			_ = os.RemoveAll(old)
		}
		j.taken = j.taken[1:]
	}
}

// stop with a savepoint below a folder.
func (j *job) stop(target string) string {
	request := fmt.Sprintf("%032x", len(j.savepoints)+1)
	j.lastID++
	dir := filepath.Join(target, fmt.Sprintf("savepoint-%.6s-%012x", j.id, time.Now().UnixNano()&(1<<48-1)))
	err := write(dir, j.lastID, j.now)
	if j.unsaved {
		_ = os.Remove(filepath.Join(dir, "_metadata"))
		err = errors.New("java.io.IOException: this job is made to fail at savepoints")
	}
	if err != nil {
		j.savepoints[request] = savepoint{failure: err.Error()}
		return request
	}
	j.savepoints[request] = savepoint{location: scheme + dir}
	j.finish()
	return request
}

// write a state. The file _metadata comes last, and whole.
func write(dir string, id int64, s account) error {
	if err := os.MkdirAll(dir, 0o770); err != nil { //nolint:gosec // Pods of the group of the volume write there.
		return err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, 0x4960672d)
	header = binary.BigEndian.AppendUint32(header, 4)
	header = binary.BigEndian.AppendUint64(header, uint64(id)) //nolint:gosec // It is no less than 1.
	part := filepath.Join(dir, "._metadata.inprogress")
	if err := os.WriteFile(part, append(header, raw...), 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, "_metadata"))
}
