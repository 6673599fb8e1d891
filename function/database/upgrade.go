// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// upgrading is an upgrade, or its undoing, that the spec asks for and that is neither under way nor carried out.
type upgrading struct {
	id   string
	undo bool

	// from and to are major versions, and back the generation that an undo goes back to.
	from, to string
	back     int

	// reason and message why it is not begun now, if it is not; until is when it is worth another look.
	reason  xpv2.ConditionReason
	message string
	until   time.Time
}

// versionOf the data of a generation.
func (s *cluster) versionOf(generation int) string {
	return cmp.Or(s.memory.Versions[generation], s.data)
}

// upgradeID names the upgrade that the spec asks for.
func (s *cluster) upgradeID() string {
	id := fmt.Sprintf("upgrade-%s-%s", s.data, s.spec.Version)
	if u := s.spec.Upgrade; u != nil && u.Retry != "" {
		id += "-" + u.Retry
	}
	return id
}

// undoID names the upgrade that the spec takes back, if it does.
func (s *cluster) undoID() string {
	if s.spec.Upgrade == nil {
		return ""
	}
	return s.spec.Upgrade.Undo
}

// isVersionLater reports whether the spec asks for a later version than that of the data.
func (s *cluster) isVersionLater() bool {
	return s.engine.CompareVersions(s.spec.Version, s.data) > 0 && s.undoID() == ""
}

// undoesTo reports whether the spec takes an upgrade back that went away from a version.
func (s *cluster) undoesTo(version string) bool {
	done, ok := s.memory.upgraded(s.undoID())
	return ok && s.memory.Versions[done.From] == version
}

// isUpgradeRequested reports whether a step of an upgrade is still asked for.
func (s *cluster) isUpgradeRequested(step *generationStep) bool {
	if step.Kind == stepUndoUpgrade {
		return s.undoID() == step.ID
	}
	return s.isVersionLater() && s.upgradeID() == step.ID
}

// upgradeRequest of the spec, unless it was carried out or is under way.
func (s *decision) upgradeRequest() *upgrading {
	u := &upgrading{id: s.undoID(), undo: s.undoID() != "", from: s.data, to: s.spec.Version}
	if step := s.memory.Step; step != nil && step.upgrades() || !u.undo && !s.isVersionLater() {
		return nil
	}
	if !u.undo {
		u.id = s.upgradeID()
	}
	done, ended := s.memory.upgraded(u.id)
	if ended && (!u.undo || done.State != v1alpha1.RestoreDone) {
		return nil
	}
	say := func(reason xpv2.ConditionReason, message string) *upgrading {
		u.reason, u.message = reason, message
		return u
	}
	if reason, message := s.memoryBlocks(v1alpha1.ReasonUpgradeWaiting); reason != "" {
		return say(reason, message)
	}
	if len(s.sets) == 0 {
		return say(v1alpha1.ReasonUpgradeWaiting, "there are no members yet: see the condition Available")
	}
	if why := s.upgradeBlocked(u, done, ended); why != "" {
		return say(v1alpha1.ReasonUpgradeImpossible, why)
	}
	if g := frozen(s.spec.Maintenance, s.Now); g.closed() {
		u.until = g.until
		return say(g.reason, g.message)
	}
	if why := s.switchBlocked(); why != "" {
		return say(v1alpha1.ReasonUpgradeWaiting, why)
	}
	if !u.undo && !s.leads() {
		return say(v1alpha1.ReasonUpgradeWaiting, "no member leads, whose data could be copied: see the condition Available")
	}
	if !u.undo && len(s.memory.Kept) >= mostKept {
		return say(v1alpha1.ReasonUpgradeWaiting, fmt.Sprintf("%d generations are kept already: it begins when the first of them is let go (see status.generation.kept)", mostKept))
	}
	return u
}

// upgradeBlocked says why a wish cannot be carried out as it is written, if it cannot.
func (s *cluster) upgradeBlocked(u *upgrading, done doneRestore, ended bool) string {
	if u.undo {
		u.back = done.From
		u.from, u.to = s.memory.Versions[done.From], s.memory.Versions[done.To]
		switch {
		case !ended:
			return fmt.Sprintf("spec.upgrade.undo: %q: no upgrade with this id led clients anywhere: see status.upgrade.id", u.id)
		case !s.memory.keeps(done.From) || s.memory.active() != done.To:
			return fmt.Sprintf("spec.upgrade.undo: %q: generation %d is not kept any more, or clients were led elsewhere since: take spec.upgrade.undo out; "+
				"the backups of that generation are still in the bucket, under stanza %s, for spec.from.backup of another Database", u.id, done.From, s.stanzaOf(done.From))
		default:
			return ""
		}
	}
	next, _ := s.find(s.spec.Version)
	if next.name != s.image.name {
		return fmt.Sprintf("spec.version: %q: image %s of this version has no programs of version %s, which read the data: ask who runs the platform for an image that has both (database.images of its settings)",
			s.spec.Version, next.name, s.data)
	}
	// What one version takes another may not.
	fields := s.fields()
	fields.Version, fields.Image = s.spec.Version, next.version
	if ps := slices.Concat(s.engine.CheckConfig(fields), s.extensionProblems(fields)); len(ps) > 0 {
		return fmt.Sprintf("spec.version: %q: the spec does not fit this version: %s", s.spec.Version, ps[0].Message)
	}
	return ""
}

// beginUpgrade that is asked for.
func (s *cluster) beginUpgrade(m memory, u *upgrading) memory {
	m.Active = m.active()
	step := &generationStep{ID: u.id, Kind: stepUpgrade, From: m.Active, To: u.back, Phase: v1alpha1.RestoreFilling, Since: s.moment()}
	if u.undo {
		step.Kind = stepUndoUpgrade
	} else {
		m.Last = max(m.Last, m.Active) + 1
		step.To = m.Last
		if m.Versions == nil {
			m.Versions = map[int]string{}
		}
		m.Versions[step.From], m.Versions[step.To] = s.data, s.spec.Version
	}
	m.Step = step
	return m
}

// fenceLimit is how long the active generation may be fenced before it goes on again, beside several times what the upgrade took
// when it was tried.
const fenceLimit = 5 * time.Minute

// fencedUntil is when the fence of an upgrade that does not end is taken away.
func (s generationStep) fencedUntil() time.Time {
	return s.Since.Add(fenceLimit + 5*time.Duration(s.Gap)*time.Second)
}

// advanceUpgrade that is under way. Clients are switched once a member leads the new generation, which none does before the
// former leader has stopped for the fence. Until that is written down the generation before can go on at any time: nobody was led
// to what the new one has.
func (s *state) advanceUpgrade(m memory) (memory, bool) {
	step, to, r := m.Step, s.siblings[m.Step.To], s.upgradeReport()
	fails := func(why string) (memory, bool) {
		m.Done = s.remembered(m.Done, doneRestore{
			ID: step.ID, Kind: stepUpgrade, State: upgradeFailed, From: step.From, To: step.To, When: s.moment(), Why: bounded(why),
		})
		m.Step = nil
		return m, true
	}
	fencing := step.Phase == v1alpha1.RestoreFencing
	switch {
	case fencing && to.leads() && to.seen.SystemIdentifier != "" && s.coordinated().Fence == step.ID:
		step.Led = cmp.Or(s.seen.Leader, step.Led)
		return s.switchClients(m), true
	case !s.wanted(step):
		m.Step = nil
		return m, true
	case r.ID == step.ID && r.Phase == apimembers.UpgradeFailed:
		return fails(r.Message)
	case fencing && !s.Now.Before(step.fencedUntil()):
		return fails(fmt.Sprintf("no member of generation %d led in time: see what hindered it in the log of member %s", step.To, to.member(letters[0])))
	case fencing:
		return m, false
	}
	if g := s.mayFence(); g.closed() {
		return m, false
	}
	step.Phase, step.Since, step.Gap, step.Led = v1alpha1.RestoreFencing, s.moment(), r.GapSeconds, s.seen.Leader
	return m, true
}

// upgradeFailed is the outcome of an upgrade that did not work.
const upgradeFailed v1alpha1.RestorePhase = "Failed"

// bounded words, which are remembered.
func bounded(why string) string {
	const most = 300
	if r := []rune(why); len(r) > most {
		return string(r[:most]) + "…"
	}
	return why
}

// upgradeReport is what the member reports that fills the generation of a later version. What it tells of another upgrade does
// not count.
func (s *cluster) upgradeReport() observev1alpha1.UpgradeReport {
	step := s.memory.Step
	if step == nil || step.Kind != stepUpgrade {
		return observev1alpha1.UpgradeReport{}
	}
	seen, _ := observeTopology(s.Observed[(&names{generation: step.To}).in(nameTopology)])
	if seen.Upgrade == nil || seen.Upgrade.ID != step.ID {
		return observev1alpha1.UpgradeReport{}
	}
	return *seen.Upgrade
}

// upgradeNext reports whether the next thing to happen to members is that they are fenced for an upgrade: its copy is ready, and
// no other change is to be done before.
func (s *cluster) upgradeNext(sit situation) bool {
	step := s.memory.Step
	return step != nil && step.Kind == stepUpgrade && step.Phase == v1alpha1.RestoreFilling && s.generation == step.From &&
		s.upgradeReport().Phase == apimembers.UpgradeReady && len(sit.outdated())+len(sit.surplus()) == 0
}

// mayFence tells what the fence of an upgrade that is ready waits for.
func (s *decision) mayFence() gate {
	waits := func(message string) gate { return gate{reason: v1alpha1.ReasonUpgradeWaiting, message: message} }
	switch {
	case s.upgradeReport().Phase != apimembers.UpgradeReady:
		return waits("the copy is not ready")
	case !s.upgradeNext(s.before):
		return waits("another change of the members comes first: see the condition Updated")
	case s.before.gate.closed():
		return s.before.gate
	case s.before.hooks.closed():
		return s.before.hooks
	case s.switchBlocked() != "":
		return waits(s.switchBlocked())
	case s.seen.Paused:
		return waits("failover is paused by hand: " + s.traits.Resume)
	case !s.up(s.before):
		return waits("every member has to be well first: see the condition HighlyAvailable")
	default:
		return gate{}
	}
}

// upgradeHash is the change of the upgrade that is under way, or "".
func (s *cluster) upgradeHash(target string) string {
	step := s.memory.Step
	if step == nil || step.Kind != stepUpgrade {
		return ""
	}
	return changePrefix + s.hashOf(target, "upgrade", step.ID)
}

// fence of the members for an upgrade, while this generation is to stop, or nothing. As long as it is not known what is under way
// it stays as it is: were it taken away, this generation would take writes that the one that is about to lead does not have.
func (s *cluster) fence() string {
	if !s.known {
		return s.coordinated().Fence
	}
	if step := s.memory.Step; s.followed() && step.Phase == v1alpha1.RestoreFencing {
		return step.ID
	}
	return ""
}

// followed reports whether a generation of a later version follows this one.
func (s *cluster) followed() bool {
	if !s.known {
		return s.coordinated().Followed
	}
	step := s.memory.Step
	return step != nil && step.Kind == stepUpgrade && step.From == s.generation
}

// coordinated is what members were told before this pass.
func (s *cluster) coordinated() engine.Coordinated {
	if o := s.Observed[s.in(nameDCS)]; o != nil {
		return s.engine.Coordinated(compose.Text(o.Map(), "metadata", "annotations", annotationConfig))
	}
	return engine.Coordinated{}
}

// kept tells how this generation is kept, if it is.
func (s *cluster) kept() keptGeneration {
	if i := slices.IndexFunc(s.memory.Kept, func(k keptGeneration) bool { return k.Generation == s.generation }); i >= 0 {
		return s.memory.Kept[i]
	}
	return keptGeneration{}
}

// upgradeFile of this generation, as long as it comes up. After that it has data: were its volumes lost, it must not begin with
// that of the former version again.
func (s *cluster) upgradeFile() *engine.Upgrade {
	if !s.comesUpBy(stepUpgrade) {
		return nil
	}
	step := s.memory.Step
	return &engine.Upgrade{
		ID: step.ID, From: s.versionOf(step.From), Database: baseOf(s.name, step.From), Scope: s.scopeOf(step.From), Member: s.member(letters[0]),
	}
}

// aloneSinceUpgrade reports whether this generation came up by an upgrade and no second member has followed its leader yet.
// Nobody could write if commits had to wait for one.
func (s *cluster) aloneSinceUpgrade() bool {
	came := s.comesUpBy(stepUpgrade) || slices.ContainsFunc(s.memory.Done, func(d doneRestore) bool {
		return d.Kind == stepUpgrade && d.State == v1alpha1.RestoreDone && d.To == s.generation
	})
	if !came {
		return false
	}
	// Once commits wait they go on to.
	return !s.coordinated().Strict && !slices.ContainsFunc(s.seen.Members, func(m observev1alpha1.TopologyMember) bool {
		return m.State == observev1alpha1.MemberStreaming
	})
}
