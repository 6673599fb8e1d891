// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// A Refresher keeps copies of certificates fresh, and lets the server read what changed. No connection breaks.
type Refresher struct {
	copies *certificate.Copies
	child  func() *process.Child
	server *mysql.Server
	manage loop.Wakeup
	log    *slog.Logger

	verifier []byte
	// stale reports that the server has not read the copies yet.
	stale bool
	last  string
}

// once refreshes, and returns the pause before the next time.
func (r *Refresher) once(ctx context.Context) time.Duration {
	if r.child() == nil {
		return certificate.RefreshEvery // the next start reads everything
	}
	if verifier, err := os.ReadFile(layout.Verifier); err == nil && !bytes.Equal(verifier, r.verifier) {
		r.verifier = verifier
		r.manage.Call()
	}
	changed, err := r.copies.Refresh(time.Now())
	if text := fmt.Sprint(err); err != nil && text != r.last {
		r.log.Error("keeping the certificates that are in use", "error", err)
		r.last = text
	}
	if r.stale = r.stale || changed; !r.stale {
		return certificate.RefreshEvery
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if err := r.server.ReloadTLS(ctx); err != nil {
		r.log.Warn("cannot let the server read its certificates, trying on", "error", err)
		return retryEvery
	}
	r.stale = false
	r.log.Info("certificates changed")
	return certificate.RefreshEvery
}

const (
	// measureEvery is how often the volume is measured.
	measureEvery = 15 * time.Second
	// halfFull is the usage from which on it is reported what fills a volume, in percent, and logShare the part of it that binary logs do not
	// take when all is well.
	halfFull = 50
	logShare = 35
	// leastRoom is what a server needs for what it writes next, in bytes.
	leastRoom = 16 << 20
)

// A Meter reports how full the volume is, and what fills it. It does not need the server, which a full volume may have stopped.
type Meter struct {
	reporter *report.Reporter
	log      *slog.Logger

	// full reports that the volume has less than leastRoom.
	full  atomic.Bool
	class string
	step  int
	last  string
}

// Full reports whether the volume has no room for what a server writes next.
func (m *Meter) Full() bool { return m.full.Load() }

// once measures the volume, and returns the pause before the next time.
func (m *Meter) once(context.Context) time.Duration {
	u, err := volume.Measure(mysqlmember.FolderVolume)
	if err != nil {
		if err.Error() != m.last {
			m.last = err.Error()
			m.log.Error("cannot measure the volume", "error", err)
		}
		return measureEvery
	}
	m.full.Store(u.Free < leastRoom)
	m.class, m.step = volume.Class(m.class, u.Percent), volume.Step(m.step, u.Percent)
	r := members.VolumeReport{UsedPercent: int32(m.step), FileSystem: fmt.Sprintf("%dMi", u.Size>>20), Fill: fill(u, logs(mysqlmember.FolderData))} //nolint:gosec // It is at most 100.
	m.reporter.Change(func(report *members.Report) { report.Disk, report.Volume = m.class, r })
	return measureEvery
}

// fill is what fills a volume that is half full, by the bytes of its binary logs.
func fill(u volume.Usage, logs int64) string {
	switch {
	case u.Percent < halfFull:
		return ""
	case logs > u.Size/100*logShare:
		return members.FillWAL
	}
	return members.FillData
}

// logs is how many bytes binary logs and relay logs take.
func logs(data string) int64 {
	var n int64
	for _, pattern := range []string{"binlog.[0-9]*", "relay*.[0-9]*"} {
		files, _ := filepath.Glob(filepath.Join(data, pattern)) // the pattern is well formed
		for _, f := range files {
			if info, err := os.Stat(f); err == nil { // one that is gone by now takes nothing
				n += info.Size()
			}
		}
	}
	return n
}

const (
	// hungFor is how long a server that has answered may not answer, with the volume fast enough, before it is killed: long after clients were
	// sent elsewhere, and long before the kubelet would restart the container. A group keeps a leader whose server hangs while the threads of
	// the group work, so that without it no client could write.
	hungFor = time.Minute
	// hungLooks have to find it so: after a freeze of the whole container the first would.
	hungLooks = 5
)

// A Watchdog reports to the probes whether the server works, and kills one that hangs. One that has not answered since its start may recover
// from a crash or copy data, which takes its time.
type Watchdog struct {
	child   func() *process.Child
	server  *mysql.Server
	probes  *health.State
	storage *volume.Responder

	// answered is the start of the server that has answered.
	answered *process.Child
	// missed are the looks in a row that had no answer, since a time.
	missed int
	since  time.Time
	log    *slog.Logger
}

// once looks, and returns the pause before the next look.
func (w *Watchdog) once(ctx context.Context) time.Duration {
	child := w.child()
	if child == nil {
		w.missed = 0
		w.probes.Beat(time.Now(), true, true)
		return 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	// A variable: if a deadlock holds the lock of the global variables no session begins, and SELECT 1 in an old one still has an answer.
	answers := w.answers(w.server.Do(ctx, "ask the server for a variable", "SELECT @@GLOBAL.offline_mode"))
	if answers {
		w.answered = child
	}
	alive := answers || w.answered != child
	storage := alive || w.storage.Answers(2*time.Second)
	w.probes.Beat(time.Now(), alive, storage)
	if w.hangs(time.Now(), alive || !storage) {
		w.log.Warn("the server has not answered for too long, and is killed", "pid", child.PID(), "looks", w.missed)
		if err := child.Signal(syscall.SIGKILL); err != nil {
			w.log.Error("cannot kill the server", "error", err)
		}
		w.missed = 0
	}
	return 5 * time.Second
}

// answers reports whether a look had an answer. A server that refuses a session, because it has too many, works; but not if it gave no answer
// before that: sessions that wait for ever fill a server that hangs.
func (w *Watchdog) answers(err error) bool {
	code := mysql.Code(err)
	return err == nil || code != 0 && (code != mysql.TooManySessions || w.missed == 0)
}

// hangs counts looks at a server, and reports when it hangs for too long.
func (w *Watchdog) hangs(now time.Time, well bool) bool {
	if well {
		w.missed = 0
		return false
	}
	if w.missed++; w.missed == 1 {
		w.since = now
	}
	return w.missed >= hungLooks && now.Sub(w.since) >= hungFor
}
