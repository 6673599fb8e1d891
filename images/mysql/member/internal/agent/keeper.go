// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

const (
	// lookEvery is the pause between two looks. The log of the server wakes the loop in between; soonAgain is the pause while a change is
	// under way.
	lookEvery = time.Second
	soonAgain = 100 * time.Millisecond
	// lookLimit is how long the server may take to say how it is, and proofLimit how long it may take to prove it.
	lookLimit  = 3 * time.Second
	proofLimit = 2 * time.Second
	// askLimit is how long the Keeper waits for a proof before it asks other members, and for what they say. Both together must be over well
	// before what was seen last is old.
	askLimit = time.Second
	// proofEvery is the time between two proofs, and provenFor how long one is good for. A look is as good.
	proofEvery = 2 * time.Second
	provenFor  = 5 * time.Second
	// frozen is the longest pause between two looks that the loop causes. After a longer one the member was frozen, and has to prove itself
	// again.
	frozen = 3 * time.Second
	// onlineFor is how long a member has to be online before its failures are forgotten.
	onlineFor = time.Minute
	// aloneFor is how long a member stays in a group without a majority, or without a leader, if the group does not end by itself.
	aloneFor = time.Minute
)

// reasons that the Keeper reports.
var reasons = []string{
	members.ReasonWaitingForMembers, members.ReasonWaitingForFormerLeader, mysqlmember.ReasonNoMajority,
	mysqlmember.ReasonRecoveryNeedsDecision, mysqlmember.ReasonExtraTransactions, mysqlmember.ReasonLeftGroup,
	members.ReasonMembersApart, members.ReasonBackupsExist, members.ReasonWaitingForBucket,
}

// Seen is what the Keeper saw at a moment.
type Seen struct {
	decision.Look
	decision.Standing

	at time.Time
	// Lag behind what the group has agreed, in words.
	Lag string
}

// fresh reports whether it is still good to act upon.
func (s Seen) fresh() bool { return time.Since(s.at) < provenFor }

// becomes reports whether the member was elected, and will lead when it has executed what it received.
func (s Seen) becomes() bool {
	own := s.Own()
	return own.State == decision.Online && own.Role == decision.Primary && s.Open
}

// A Keeper looks at the server and its group, brings the member into the group, and lets clients in only while that is right.
type Keeper struct {
	names    layout.Names
	child    func() *process.Child
	state    func() string
	server   *mysql.Server
	pods     *pods.Client
	store    *record.Client
	reporter *report.Reporter
	// filling restores the backup that a Database begins with, and existing looks for backups under the name of one that begins empty.
	filling  *Filling
	existing existing.Backups
	log      *slog.Logger
	// full reports that the volume has no room for what a server writes next.
	full func() bool
	// compared is how this member, as a replica, was beside its leader.
	compared func() Comparison
	// away reports that the member has to leave its group, and to stay out of it.
	away func() bool
	// changed are called when something else is seen.
	changed []loop.Wakeup

	seen atomic.Pointer[Seen]
	// blind is the seat of this member in the group, if it joined while the API server was down and its seat is not recorded. The Recorder
	// says by sat which one it has recorded since.
	blind atomic.Pointer[record.Seat]
	sat   func() *record.Seat
	// weight of the member in elections, as it was set last, or 0, and hosts are where other members were last, by name.
	weight int
	hosts  map[string]string
	// entering reports that it is about to begin or join a group. Others must not begin one meanwhile.
	entering atomic.Bool
	// looked and proved are when it last looked and had a proof, and alone since when the group has no majority; zero for never.
	looked, proved, alone time.Time
	// again is the pause after the last try to enter a group that failed, and notBefore when it ends.
	again     time.Duration
	notBefore time.Time
	// online is since when the member is online without a break; zero while it is not.
	online time.Time
	// only is the id of this member's data while it is the only one of its group, and group the name of the group that it entered last.
	only, group string
	last        string
}

// Seen is what was seen last. It is zero when nothing is known.
func (k *Keeper) Seen() Seen {
	s := k.seen.Load()
	if s == nil || !s.fresh() {
		return Seen{}
	}
	return *s
}

// Ready reports whether clients should be sent here.
func (k *Keeper) Ready(context.Context) (bool, error) {
	s := k.Seen()
	if s.Ready {
		return true, nil
	}
	if s.Server == "" {
		return false, errors.New("the server does not answer")
	}
	own := s.Own()
	return false, fmt.Errorf("the member is %s in its group %s", own.State, own.Role)
}

// Answer other members what this one has, and whether it is in a group with a majority: with a proof, or as far as it sees.
func (k *Keeper) Answer(ctx context.Context, proof bool) decision.Member {
	if k.child() == nil {
		return decision.Member{State: decision.Starting}
	}
	l, err := k.server.Look(ctx)
	if err != nil {
		return decision.Member{State: decision.Starting}
	}
	has, err := has(l)
	m := decision.Member{State: decision.Grouped, Server: l.Server, Has: has, GroupName: l.GroupName, Follows: l.Leader(), Addresses: true, Full: k.full()}
	switch own := l.Own(); {
	case err != nil:
		return decision.Member{State: decision.Starting}
	case k.entering.Load():
		m.State = decision.Entering
	case own.State == decision.Outside:
		m.State = decision.Offline
	case own.State == decision.Online && l.Majority():
		m.Proven = proof && !k.stops() && k.server.Prove(ctx) == nil
	}
	if m.State == decision.Grouped {
		for _, p := range l.Group {
			m.Group = append(m.Group, layout.MemberOf(p.Host))
			if p.State == decision.Online || p.State == decision.Recovering {
				m.Hears = append(m.Hears, layout.MemberOf(p.Host))
			}
		}
	}
	return m
}

// stops reports whether the member stops, or is about to.
func (k *Keeper) stops() bool { return k.state() == members.StateStopping || handover.Announced() }

// publish what was seen, and wake the others if it is news to them.
func (k *Keeper) publish(s Seen) {
	before := k.seen.Swap(&s)
	// What a server executes is no news.
	news := func(s Seen) string {
		var b strings.Builder
		fmt.Fprint(&b, s.Standing, s.Lag, s.Version)
		for _, p := range s.Group {
			fmt.Fprint(&b, p.Server, p.State, p.Role)
		}
		return b.String()
	}
	if before != nil && news(*before) == news(s) {
		return
	}
	for _, w := range k.changed {
		w.Call()
	}
}

// once looks, acts on it, and returns the pause before the next look.
func (k *Keeper) once(ctx context.Context) time.Duration {
	now := time.Now()
	if now.Sub(k.looked) > frozen {
		k.proved = time.Time{}
	}
	defer func() { k.looked = time.Now() }()
	if k.child() == nil {
		k.proved, k.alone, k.again, k.notBefore = time.Time{}, time.Time{}, 0, time.Time{}
		k.publish(Seen{})
		return lookEvery
	}
	l, err := k.look(ctx)
	if err != nil {
		k.note(err.Error())
		return soonAgain // what was seen last is good for a moment
	}
	stops := k.stops()
	// A proof under way while the server stops would hold it up for a minute. One whose seat is not recorded needs none: it was elected because
	// there is no other one, and takes writes until clients are sent away.
	proven := (!stops || !l.Shut) && k.Unrecorded() == nil && k.prove(ctx, l)
	before, late := k.Seen(), k.compared().Late
	if !k.alone.IsZero() {
		// Without a leader nothing is compared, and what others commit may not come here.
		late = max(late, now.Sub(k.alone))
	}
	s := Seen{at: now, Look: l, Lag: decision.Lag(before.Lag, l.Own().Queue, late)}
	s.Standing = decision.Stand(l, proven, stops, s.Lag)
	if err := k.admit(ctx, s, stops); err != nil {
		k.note(err.Error())
	}
	if !stops && handover.Overdue() {
		if err := handover.Recall(ctx, k.server); err != nil {
			k.note(err.Error())
		}
	}
	k.publish(s)
	k.reporter.Change(func(r *members.Report) { r.Version = l.Version })
	return k.act(ctx, now, s, stops)
}

// act on what was seen: leave a group, enter one, or belong to it. It returns the pause before the next look.
func (k *Keeper) act(ctx context.Context, now time.Time, s Seen, stops bool) time.Duration {
	own := s.Own()
	switch {
	case k.away() && own.State == decision.Outside:
		return lookEvery
	case k.away() && own.State != decision.Failed && own.Role != decision.Primary:
		k.leave(ctx, "it is copied again, as requested")
		return soonAgain
	case own.State == decision.Failed:
		k.leave(ctx, "the group let this member go")
		// It may have failed to copy data or to apply it, and may do so again.
		k.pause()
		k.say(decision.Entry{Reason: mysqlmember.ReasonLeftGroup, Message: fmt.Sprintf(
			"the member could not stay in the group, and tries again after %s: the log of its pod has the reason", k.again)})
		return soonAgain
	case own.State == decision.Outside && (stops || now.Before(k.notBefore)):
		return lookEvery // what a try writes to the log wakes this loop
	case own.State == decision.Outside:
		return k.enter(ctx, s.Look)
	}
	return k.belong(ctx, s.Look, s)
}

// belong to a group: report whether it has a majority, and leave one that has none for long.
func (k *Keeper) belong(ctx context.Context, l decision.Look, s Seen) time.Duration {
	own := l.Own()
	k.count(own.State)
	lost := !l.Majority() || !l.Online()
	if !lost && l.HasLeader() {
		return k.follow(ctx, l, s)
	}
	if k.alone.IsZero() {
		k.alone = time.Now()
	}
	if time.Since(k.alone) > aloneFor && (lost || k.stuck(ctx, l)) {
		k.leave(ctx, "for a minute the group has had no majority, no member that is online, or no leader")
		return lookEvery
	}
	silent := namesOf(l.Silent())
	slices.Sort(silent)
	switch {
	case l.Majority() && len(silent) > 0 && time.Since(k.alone) > aloneFor:
		k.say(decision.Entry{Reason: members.ReasonMembersApart, Message: fmt.Sprintf("this member does not hear from the leader of its group, and hears from a majority, "+
			"which keeps both: check the network between its node and %s", strings.Join(silent, ", "))})
		return lookEvery
	case l.Majority():
		return soonAgain
	}
	k.say(decision.Entry{Reason: mysqlmember.ReasonNoMajority, Message: strings.Join(silent, ", ") +
		" do not answer, so this member is in no majority, and takes neither reads nor writes until they are back"})
	return lookEvery
}

// follow the leader that this member hears from, or be it.
func (k *Keeper) follow(ctx context.Context, l decision.Look, s Seen) time.Duration {
	k.alone, k.only = time.Time{}, ""
	if len(l.Group) == 1 && k.Unrecorded() == nil {
		k.only = l.Server
	}
	k.weigh(ctx, s.Lag)
	k.yield(ctx, l)
	if !k.online.IsZero() {
		k.say(k.compared().Report)
		if time.Since(k.online) > onlineFor {
			k.again = 0
		}
	}
	if own := l.Own(); own.State == decision.Recovering || (own.Role == decision.Primary && !s.Ready) {
		return soonAgain
	}
	return lookEvery
}

// Unrecorded is the seat of this member, if it is in a group and its seat is not recorded; else nil. It follows, and does not lead: all
// members that may have to say something after an outage are in the record, and a leader has what no other member may have.
func (k *Keeper) Unrecorded() *record.Seat {
	if seat := k.blind.Load(); seat != nil && seat != k.sat() {
		return seat
	}
	return nil
}

// weigh as much as others in elections, unless this member must not lead, or could not, or would have to receive and execute much first.
func (k *Keeper) weigh(ctx context.Context, lag string) {
	weight := mysql.WeightUsual
	if k.Unrecorded() != nil || k.full() || lag == members.LagFarBehind {
		weight = mysql.WeightLast
	}
	if weight == k.weight {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if err := k.server.Weigh(ctx, weight); err != nil {
		k.note(err.Error())
		return
	}
	k.weight = weight
}

// count since when the member is online without a break.
func (k *Keeper) count(state string) {
	switch {
	case state != decision.Online:
		k.online = time.Time{}
	case k.online.IsZero():
		k.online = time.Now()
	}
}

// stuck reports whether the group waits for members that are there, in no group: it can neither reach them nor remove them. Seen with
// leaders that were killed seconds after another member had joined. All of them can begin again together.
func (k *Keeper) stuck(ctx context.Context, l decision.Look) bool {
	hosts := map[string]string{}
	for _, p := range l.Silent() {
		hosts[layout.MemberOf(p.Host)] = p.Host
	}
	back := 0
	for _, m := range peers.Ask(ctx, k.names.Scope, hosts) {
		if m.State == decision.Offline {
			back++
		}
	}
	return back > 0 && back == len(hosts)
}

// pause before the next try to enter a group: twice the last one.
func (k *Keeper) pause() {
	k.again = min(max(2*k.again, firstAgain), lastAgain)
	k.notBefore = time.Now().Add(k.again)
}

// look at the server and its group.
func (k *Keeper) look(ctx context.Context) (decision.Look, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return k.server.Look(ctx)
}

// prove that this member is the leader, if it takes itself for that. A proof that is refused ends it at once. One that takes too long leaves
// the last one good for a moment: it waits behind a large transaction that is under way, which must not cost all sessions. So then the
// other members have to say it: while a majority hears from this member as its leader, it is the leader.
func (k *Keeper) prove(ctx context.Context, l decision.Look) bool {
	if own := l.Own(); own.State != decision.Online || own.Role != decision.Primary || !l.Majority() {
		k.proved = time.Time{}
		return false
	}
	if begun := time.Now(); begun.Sub(k.proved) >= proofEvery {
		switch err := k.tryProof(ctx); {
		case err == nil:
			k.proved = begun
		case mysql.Refused(err):
			k.proved = time.Time{}
			k.note(err.Error())
		case k.witnessed(ctx, l):
			k.proved = begun
			k.note(err.Error() + ": a majority hears from this member as its leader")
		default:
			k.note(err.Error())
		}
	}
	return time.Since(k.proved) < provenFor
}

func (k *Keeper) tryProof(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return k.server.Prove(ctx)
}

// witnessed by a majority of the group to be its leader. Writes do not depend on it, because none is acknowledged without the group. It
// keeps readers of a former leader from being let in: others no longer hear from one that was cut off, and follow another one when it was
// frozen.
func (k *Keeper) witnessed(ctx context.Context, l decision.Look) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return l.Witnessed(peers.AskNow(ctx, k.names.Scope, othersOf(l)))
}

// admit clients, or send them away. One that stops admits no client again.
func (k *Keeper) admit(ctx context.Context, s Seen, stops bool) error {
	if own := s.Own(); own.State == decision.Online && own.Role == decision.Secondary && !s.ReadOnly {
		// The group sees to it. It must not depend on that alone. One that copies data takes writes while it removes its own, and lets no client in.
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		if err := k.server.TakeNoWrites(ctx); err != nil {
			return err
		}
	}
	if s.Open != s.Shut || s.Open && stops {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return k.server.Shut(ctx, !s.Open)
}

// leave a group that this member is of no use in.
func (k *Keeper) leave(ctx context.Context, why string) {
	k.log.Info("leaving the group", "reason", why)
	ctx, cancel := context.WithTimeout(ctx, enterLimit)
	defer cancel()
	if err := k.server.Leave(ctx); err != nil {
		k.note(err.Error())
	}
	k.alone = time.Time{}
}

// say why the member is in no group, or that nothing is in its way.
func (k *Keeper) say(e decision.Entry) {
	k.reporter.Change(func(r *members.Report) {
		if e.Reason != "" || slices.Contains(reasons, r.Reason) {
			r.Reason, r.Message = e.Reason, e.Message
		}
	})
	if e.Message != "" {
		k.note(strings.TrimPrefix(e.Reason+": "+e.Message, ": "))
	}
}

// note something in the log, once.
func (k *Keeper) note(text string) {
	if text != k.last {
		k.log.Warn(text)
	}
	k.last = text
}
