// SPDX-License-Identifier: Apache-2.0

// Package member carries out what the coordinator of a run decides in one pod: it starts and stops the ranks there, watches them, and
// reports. Without a coordinator it has no ranks.
package member

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/ranks"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// Config of a member.
type Config struct {
	// Plan with defaults.
	Plan  crew.Plan
	Index int
	// Command of a rank.
	Command []string
	// Host of the pod with an index.
	Host func(index int) string
	// Scratch is the folder for files of progress.
	Scratch string
	// Out gets what the ranks write.
	Out     io.Writer
	Log     *slog.Logger
	Keeper  *process.Keeper
	Watcher *watch.Watcher
	Memory  process.Memory
	// WaitLimit is how long a member waits for a coordinator.
	WaitLimit time.Duration
}

// An Outcome is how a member ended.
type Outcome struct {
	// Code with which the companion exits.
	Code int
	// Words for people.
	Words string
}

// pace of the member's own work.
const (
	tickEvery   = 100 * time.Millisecond
	reportEvery = 200 * time.Millisecond
	// tailBytes is how much of the last lines travels with a fault.
	tailBytes = 1500
)

// A member in its loop. Only the loop's goroutine uses it.
type member struct {
	Config

	// link with the coordinator. Nil while there is none; dialled gets the next one.
	link     *link
	dialled  chan *link
	alone    time.Time // since when no coordinator has said anything, zero while one does
	lease    time.Time
	sequence uint64
	beats    map[uint64]time.Time // when they were sent
	beatAt   time.Time

	// What the member knows of the run.
	ledger     protocol.Ledger
	step       int64
	checkpoint *crew.Checkpoint

	// group of ranks. Nil while there are none.
	group    *ranks.Group
	attempt  int
	halted   protocol.How // "" while they run
	well     int
	fault    *protocol.Fault // that was reported last
	kills    int
	reportAt time.Time

	leaving bool
	outcome *Outcome
}

// Run a member until the run ends, its pod has to go, or it cannot continue. The end of the context is the request to go.
func Run(ctx context.Context, c Config) Outcome {
	m := &member{
		Config: c, dialled: make(chan *link, 1), alone: time.Now(), beats: map[uint64]time.Time{}, attempt: -1,
		ledger: protocol.Ledger{Attempt: -1},
	}
	dialling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	m.dial(dialling)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	told := ctx.Done()
	for m.outcome == nil || m.group != nil {
		var in chan protocol.Message
		if m.link != nil {
			in = m.link.in
		}
		var found chan ranks.Found
		var ended chan ranks.Ended
		var stopped <-chan struct{}
		if m.group != nil {
			found, ended, stopped = m.group.Found, m.group.Ended, m.group.Stopped()
		}
		select {
		case <-told:
			told = nil
			m.leave()
		case l := <-m.dialled:
			m.greet(l)
		case message, ok := <-in:
			if !ok {
				m.unlink(dialling, "its connection ended")
				break
			}
			m.obey(message)
		case f := <-found:
			m.blame(&protocol.Fault{
				Class: f.Fault.Class, Rank: f.Rank, Message: fmt.Sprintf("rank %d %s", f.Rank, f.Fault.Message), Lines: m.group.Tail(f.Rank, tailBytes),
			}, true)
		case e := <-ended:
			m.end(e)
		case <-stopped:
			m.stopped(dialling)
		case now := <-tick.C:
			m.tick(dialling, now)
		}
	}
	if m.link != nil {
		m.link.close()
	}
	return *m.outcome
}

// dial the coordinator in the background.
func (m *member) dial(ctx context.Context) {
	address := net.JoinHostPort(m.Host(0), strconv.Itoa(crew.Port))
	go func() {
		if l, err := dial(ctx, address); err == nil {
			m.dialled <- l
		}
	}()
}

// greet the coordinator.
func (m *member) greet(l *link) {
	if m.outcome != nil {
		l.close()
		return
	}
	now := time.Now()
	m.link, m.lease, m.beatAt, m.sequence = l, now.Add(protocol.Lease), now, 0
	clear(m.beats)
	m.say(protocol.Message{Kind: protocol.Hello, Attempt: m.ledger.Attempt, Greeting: &protocol.Greeting{
		Ledger: m.ledger, Step: m.step, Checkpoint: m.checkpoint,
	}})
	if m.leaving {
		m.say(protocol.Message{Kind: protocol.Leaving, Attempt: max(0, m.attempt)})
	}
}

// say something to the coordinator, if there is one.
func (m *member) say(message protocol.Message) {
	if m.link != nil {
		message.Run, message.Index = m.Plan.Run, m.Index
		m.link.send(message)
	}
}

// unlink: the coordinator is gone. Ranks cannot make progress without it.
func (m *member) unlink(dialling context.Context, why string) {
	m.link.close()
	m.link = nil
	if m.alone.IsZero() {
		m.alone = time.Now()
	}
	if m.group != nil {
		m.Log.Warn("the coordinator is gone, and the ranks are stopped", "why", why)
		m.halt(protocol.Kill)
		return // The next link begins with the words that there are no ranks.
	}
	m.dial(dialling)
}

// obey the coordinator.
func (m *member) obey(message protocol.Message) {
	if message.Run != m.Plan.Run || message.Index != m.Index {
		_ = m.link.conn.Close()
		return
	}
	m.alone = time.Time{}
	switch message.Kind {
	case protocol.Beat:
		if sent, ok := m.beats[message.Sequence]; ok {
			m.lease = sent.Add(protocol.Lease)
			delete(m.beats, message.Sequence)
		}
	case protocol.Account:
		m.note(*message.Ledger)
	case protocol.Start:
		m.start(message)
	case protocol.Stop:
		if message.Attempt != m.attempt {
			break
		}
		if m.group == nil {
			m.say(protocol.Message{Kind: protocol.Stopped, Attempt: m.attempt})
			break
		}
		m.halt(message.Halt.How)
	case protocol.Finish:
		m.outcome = &Outcome{Code: message.Verdict.Code, Words: message.Verdict.Message}
		if m.group != nil {
			m.halt(protocol.Kill)
		}
	default: // Members' own kinds.
		_ = m.link.conn.Close()
	}
}

// note the ledger.
func (m *member) note(l protocol.Ledger) {
	if l.Attempt > m.ledger.Attempt {
		m.step = 0
	}
	m.ledger = l
}

// start the ranks of an attempt.
func (m *member) start(message protocol.Message) {
	if m.group != nil || message.Attempt <= m.attempt || m.leaving {
		m.Log.Error("the coordinator started an attempt that cannot be", "attempt", message.Attempt)
		_ = m.link.conn.Close()
		return
	}
	m.note(*message.Ledger)
	m.attempt, m.halted, m.well, m.fault = message.Attempt, "", 0, nil
	m.kills, _ = m.Memory.Kills()
	o := *message.Orders
	first, master := o.GroupRank*m.Plan.Processes, m.link.master(o.Master, m.Host)
	m.Log.Info("attempt begins", "attempt", m.attempt, "rank", first, "resumeFrom", o.ResumeFrom)
	m.group = ranks.Start(m.Keeper, ranks.Launch{
		Command: m.Command, First: first, Processes: m.Plan.Processes, Scratch: m.Scratch, Attempt: m.attempt, Out: m.Out, Watcher: m.Watcher,
		Environment: func(rank int, progress string) []string {
			return environment(m.Plan, o, m.attempt, rank, master, progress)
		},
	})
}

// environment of a rank: what torchrun sets, and the contract's.
func environment(p crew.Plan, o protocol.Orders, attempt, rank int, master, progress string) []string {
	folder := ""
	if p.Checkpoints != nil {
		folder = p.Checkpoints.Dir
	}
	all := []string{
		"RANK=" + strconv.Itoa(rank),
		"LOCAL_RANK=" + strconv.Itoa(rank-o.GroupRank*p.Processes),
		"WORLD_SIZE=" + strconv.Itoa(p.Workers*p.Processes),
		"LOCAL_WORLD_SIZE=" + strconv.Itoa(p.Processes),
		"GROUP_RANK=" + strconv.Itoa(o.GroupRank),
		"GROUP_WORLD_SIZE=" + strconv.Itoa(p.Workers),
		"MASTER_ADDR=" + master,
		"MASTER_PORT=" + strconv.Itoa(o.MasterPort),
		"TORCHELASTIC_RESTART_COUNT=" + strconv.Itoa(attempt),
		"TORCHELASTIC_RUN_ID=" + p.Training + "-" + strconv.Itoa(p.Run),
		crew.EnvRun + "=" + strconv.Itoa(p.Run),
		crew.EnvAttempt + "=" + strconv.Itoa(attempt),
		crew.EnvResumeFrom + "=" + o.ResumeFrom,
		crew.EnvProgress + "=" + progress,
		crew.EnvCheckpoints + "=" + folder,
	}
	if p.Checkpoints != nil && p.Checkpoints.EverySeconds > 0 {
		all = append(all, crew.EnvCheckpointEvery+"="+strconv.Itoa(p.Checkpoints.EverySeconds))
	}
	// Python buffers what is not written to a terminal, and keeps its stacks to itself. Values of the container stay.
	for _, name := range []string{"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"} {
		if _, set := os.LookupEnv(name); !set {
			all = append(all, name+"=1")
		}
	}
	return all
}

// halt the ranks.
func (m *member) halt(how protocol.How) {
	m.halted = how
	m.group.Halt(how, time.Duration(m.Plan.GraceSeconds)*time.Second)
}

// leave: the pod has to go. The coordinator lets the ranks of other pods write a checkpoint, too.
func (m *member) leave() {
	m.leaving = true
	m.say(protocol.Message{Kind: protocol.Leaving, Attempt: max(0, m.attempt)})
	if m.outcome == nil {
		m.outcome = &Outcome{Code: crew.ExitEnded, Words: "the pod had to go"}
	}
	if m.group != nil {
		m.halt(protocol.Terminate)
	}
}

// end of a rank.
func (m *member) end(e ranks.Ended) {
	last := m.group.Tail(e.Rank, tailBytes)
	folder := ""
	if m.Plan.Checkpoints != nil {
		folder = m.Plan.Checkpoints.Dir
	}
	if fault := classify(e.Rank, e.Exit, last, m.Memory.Since(m.kills), folder); fault != nil {
		m.blame(fault, e.Exit.Code > 0)
		return
	}
	m.well++
	m.report(time.Now())
	if m.well == 1 {
		m.say(protocol.Message{Kind: protocol.Ending, Attempt: m.attempt})
	}
	if m.well == m.Plan.Processes {
		m.say(protocol.Message{Kind: protocol.Done, Attempt: m.attempt})
	}
}

// report a fault, unless another one of this attempt counts. It is the rank's own unless it was ended by a signal.
func (m *member) blame(f *protocol.Fault, own bool) {
	if !counts(m.fault, f, m.halted, own) {
		return
	}
	m.fault = f
	if len(f.Message) > protocol.MaxWords {
		f.Message = strings.ToValidUTF8(f.Message[:protocol.MaxWords], "")
	}
	m.report(time.Now())
	m.Log.Warn("fault", "attempt", m.attempt, "class", f.Class, "message", f.Message)
	m.say(protocol.Message{Kind: protocol.Failed, Attempt: m.attempt, Fault: f})
}

// stopped: no rank is left.
func (m *member) stopped(dialling context.Context) {
	for left := true; left; {
		select {
		case e := <-m.group.Ended:
			m.end(e)
		default:
			left = false
		}
	}
	m.report(time.Now())
	unfit := m.group.Unfit()
	m.group = nil
	if unfit {
		m.outcome = &Outcome{Code: crew.ExitUnfit, Words: "processes of the ranks do not end: this pod cannot run others"}
		return
	}
	m.Log.Info("stopped", "attempt", m.attempt)
	m.say(protocol.Message{Kind: protocol.Stopped, Attempt: m.attempt})
	if m.link == nil && m.outcome == nil {
		m.dial(dialling)
	}
}

// report progress.
func (m *member) report(now time.Time) {
	p, some := m.group.Progress(now)
	m.reportAt = now
	if !some {
		return
	}
	for _, r := range p.Ranks {
		m.step = max(m.step, r.Step)
	}
	for _, c := range p.Checkpoints {
		if m.checkpoint == nil || !c.At.Before(m.checkpoint.At) {
			m.checkpoint = &c
		}
	}
	m.say(protocol.Message{Kind: protocol.Advanced, Attempt: m.attempt, Progress: &p})
}

// tick: report, beat, and see to the lease.
func (m *member) tick(dialling context.Context, now time.Time) {
	if m.group != nil && now.Sub(m.reportAt) >= reportEvery {
		m.report(now)
	}
	if m.link == nil {
		if m.group == nil && m.outcome == nil && now.Sub(m.alone) > m.WaitLimit {
			m.outcome = &Outcome{Code: crew.ExitUnfit, Words: fmt.Sprintf("the coordinator, pod 0, was not reached for %s", m.WaitLimit)}
		}
		return
	}
	if now.After(m.lease) {
		m.unlink(dialling, "it was silent for "+protocol.Lease.String())
		return
	}
	if now.Sub(m.beatAt) >= protocol.BeatEvery {
		m.beatAt = now
		m.sequence++
		m.beats[m.sequence] = now
		beat := protocol.Message{Kind: protocol.Beat, Attempt: max(0, m.attempt), Sequence: m.sequence}
		if m.group != nil {
			beat.SilentMillis = m.group.Silent(now).Milliseconds()
		}
		m.say(beat)
	}
}
