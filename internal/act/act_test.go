// SPDX-License-Identifier: Apache-2.0

package act

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// from text, an object.
func from[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("bad YAML in a test: %v\n%s", err, text)
	}

	return o
}

// reco is in a step, and has fields that no act may touch.
func reco(t *testing.T, spec, status string) *v1alpha1.Algorithm {
	t.Helper()

	return from[v1alpha1.Algorithm](t, `
metadata: {name: reco, namespace: demo, generation: 4, resourceVersion: "77"}
spec: `+spec+`
status: `+status)
}

const (
	stepping = `{conditions: [{type: Synced, status: "True", reason: ReconcileSuccess, lastTransitionTime: null, observedGeneration: 4}],
  rollout: {phase: Stepping, epoch: 3, weight: 20, stable: 51aa51aa51, candidate: 7c9f7c9f7c}, revision: {live: 51aa51aa51}}`
	stable     = `{rollout: {phase: Stable, epoch: 3, weight: 0}}`
	rolledOff  = `{rollout: {phase: RolledBack, reason: MetricFailed, epoch: 3, weight: 0, candidate: 7c9f7c9f7c, failed: [{revision: 7c9f7c9f7c, reason: MetricFailed, at: "2026-11-26T11:00:00Z", attempts: 1, retryAfter: "2026-11-26T11:10:00Z"}]}}`
	bySteps    = `{image: x, lifecycle: {steps: [20, 50], approval: EveryStep}}`
	noApproval = `{image: x, lifecycle: {steps: [20, 50]}}`
)

func TestAlgorithm(t *testing.T) {
	cases := map[string]struct {
		reason       string
		act          func(*v1alpha1.Algorithm) (ofAlgorithm, error)
		spec, status string
		want         string
		manifest     string
		done, err    string
		ask          bool
	}{
		"Pause":         {reason: "One field holds a rollout.", act: Pause, spec: bySteps, status: stepping, want: `{"spec":{"rollout":{"pause":true}}}`, manifest: "spec:\n  rollout:\n    pause: true\n"},
		"PauseStable":   {reason: "No rollout begins then.", act: Pause, spec: bySteps, status: stable, want: `{"spec":{"rollout":{"pause":true}}}`},
		"PauseTwice":    {reason: "What is so already is said.", act: Pause, spec: `{image: x, lifecycle: {}, rollout: {pause: true}}`, status: stepping, done: "its rollout is paused already"},
		"Resume":        {reason: "The field goes, as in Git.", act: Resume, spec: `{image: x, lifecycle: {}, rollout: {pause: true, approve: ["7c9f7c9f7c"]}}`, status: stepping, want: `{"spec":{"rollout":{"pause":null}}}`, manifest: "# Remove spec.rollout.pause.\n"},
		"ResumeRunning": {reason: "Nothing is paused.", act: Resume, spec: bySteps, status: stepping, done: "its rollout is not paused"},
		"Approve":       {reason: "The next step follows from the spec.", act: approve(0), spec: bySteps, status: stepping, want: `{"metadata":{"resourceVersion":"77"},"spec":{"rollout":{"approve":["7c9f7c9f7c:50"]}}}`, manifest: "spec:\n  rollout:\n    approve:\n    - 7c9f7c9f7c:50\n"},
		"ApproveMore": {
			reason: "Approvals of before stay: a merge patch replaces the list.", act: approve(100), spec: `{image: x, lifecycle: {approval: BeforePromotion}, rollout: {approve: ["51aa51aa51"]}}`, status: stepping,
			want: `{"metadata":{"resourceVersion":"77"},"spec":{"rollout":{"approve":["51aa51aa51","7c9f7c9f7c:100"]}}}`,
		},
		"ApprovePromotion": {reason: "Without approvals of steps only promotion waits.", act: approve(0), spec: `{image: x, lifecycle: {steps: [20, 50], approval: BeforePromotion}}`, status: stepping, want: `{"metadata":{"resourceVersion":"77"},"spec":{"rollout":{"approve":["7c9f7c9f7c:100"]}}}`},
		"ApproveTwice":     {reason: "The revision is approved as a whole.", act: approve(0), spec: `{image: x, lifecycle: {approval: EveryStep}, rollout: {approve: ["7c9f7c9f7c"]}}`, status: stepping, done: "is approved up to 100 % already"},
		"ApproveNothing":   {reason: "It would have no effect.", act: approve(0), spec: noApproval, status: stepping, err: "its rollout waits for no approval"},
		"ApproveStable":    {reason: "There is nothing to approve.", act: approve(0), spec: bySteps, status: stable, err: "no revision is under test: the rollout is Stable"},
		"ApproveTooMuch":   {reason: "A share is at most all.", act: approve(101), spec: bySteps, status: stepping, err: "a share is from 1 to 100"},
		"Promote":          {reason: "Traffic moves without evidence: a person agrees.", act: Promote, spec: bySteps, status: stepping, want: `{"spec":{"rollout":{"promote":"7c9f7c9f7c"}}}`, ask: true},
		"PromoteStable":    {reason: "There is nothing to promote.", act: Promote, spec: bySteps, status: stable, err: "no revision is under test"},
		"PromoteFailed":    {reason: "promote does not try a revision again.", act: Promote, spec: bySteps, status: rolledOff, err: "try it again with retry"},
		"PromoteAborted":   {reason: "The two contradict each other.", act: Promote, spec: `{image: x, lifecycle: {}, rollout: {abort: 7c9f7c9f7c}}`, status: stepping, err: "spec.rollout.abort names revision 7c9f7c9f7c: remove it first"},
		"Abort":            {reason: "Traffic moves: a person agrees.", act: Abort, spec: bySteps, status: stepping, want: `{"spec":{"rollout":{"abort":"7c9f7c9f7c"}}}`, ask: true},
		"AbortFailed":      {reason: "It is over.", act: Abort, spec: bySteps, status: rolledOff, err: "revision 7c9f7c9f7c was rolled back (MetricFailed)"},
		"Retry":            {reason: "The number of the attempt follows from the status.", act: Retry, spec: bySteps, status: rolledOff, want: `{"spec":{"rollout":{"retry":"7c9f7c9f7c#2"}}}`},
		"RetryRunning":     {reason: "Nothing failed.", act: Retry, spec: bySteps, status: stepping, err: "was not rolled back: the rollout is Stepping"},
		"RetryAborted":     {reason: "The attempt would end at once.", act: Retry, spec: `{image: x, lifecycle: {}, rollout: {abort: 7c9f7c9f7c}}`, status: rolledOff, err: "spec.rollout.abort names revision"},
		"NoLifecycle":      {reason: "The schema would refuse spec.rollout.", act: Pause, spec: `{image: x}`, status: `{}`, err: "spec.lifecycle is not set"},
		"Refused":          {reason: "No edit counts then.", act: Abort, spec: bySteps, status: `{conditions: [{type: Accepted, status: "False", reason: InvalidSpec, message: "spec.image: is empty", lastTransitionTime: null}], rollout: {phase: Stepping, epoch: 1, weight: 1}}`, err: "no edit counts until it is corrected: spec.image: is empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := reco(t, tc.spec, tc.status)
			plan, err := tc.act(a)
			check(t, tc.reason, plan, err, a.ResourceVersion, tc.want, tc.manifest, tc.done, tc.err, tc.ask)
		})
	}
}

func approve(weight int32) func(*v1alpha1.Algorithm) (ofAlgorithm, error) {
	return func(a *v1alpha1.Algorithm) (ofAlgorithm, error) { return Approve(a, weight) }
}

// check what was decided.
func check[T any](t *testing.T, reason string, plan Plan[T], err error, version, want, manifest, done, failure string, ask bool) {
	t.Helper()
	if failure != "" || err != nil {
		if err == nil || failure == "" || !strings.Contains(err.Error(), failure) {
			t.Fatalf("%s\nwant error %q, got %v", reason, failure, err)
		}

		return
	}
	if !strings.Contains(plan.Done, done) || (plan.Done == "") != (done == "") {
		t.Fatalf("%s\nwant nothing to do %q, got %q", reason, done, plan.Done)
	}
	if done != "" {
		return
	}
	if !plan.Replaces {
		version = ""
	}
	patch, err := plan.Patch(version)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("%s\npatch: -want, +got:\n%s", reason, diff)
	}
	text, err := plan.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest != "" && text != manifest {
		t.Errorf("%s\nmanifest: -want, +got:\n%s", reason, cmp.Diff(manifest, text))
	}
	if plan.Ask != ask {
		t.Errorf("%s\nwant a question %t, got %t", reason, ask, plan.Ask)
	}
	if len(plan.Words) == 0 {
		t.Errorf("%s\nit does not say what will happen", reason)
	}
}

// orders runs with three members, and was backed up.
const running = `{phase: Running, leader: orders-a, readyReplicas: 3, replicas: 3,
  members: [{name: orders-a, role: Leader, state: Running, updated: true}, {name: orders-b, role: SyncStandby, state: Streaming, updated: true}, {name: orders-c, role: Replica, state: Streaming, updated: true}],
  connectionSecrets: [{consumer: api, secret: orders-api, ready: true}, {consumer: own, secret: orders-own, ready: true}],
  backup: {last: {id: F1, at: "2026-11-26T02:00:00Z"}, earliestRestorable: "2026-11-20T02:00:00Z", restorePoints: [{name: 3f2a9c1b7d}]}}`

// alone is its state with one member.
const alone = `{phase: Running, leader: orders-a, members: [{name: orders-a, role: Leader, state: Running, updated: true}]}`

// back is its state after a restore.
const back = `{phase: Running, leader: orders-g2-a, restore: {id: bad-deploy, phase: Done, from: 1, to: 2}, generation: {active: 2, kept: [{generation: 1, restore: bad-deploy, until: "2026-11-27T00:00:00Z"}]}}`

func TestDatabase(t *testing.T) {
	type database = *v1alpha1.Database
	cases := map[string]struct {
		reason       string
		act          func(database) (ofDatabase, error)
		spec, status string
		want         string
		manifest     string
		done, err    string
		ask          bool
	}{
		"Switchover":       {reason: "The planner chooses.", act: switchover(""), status: running, want: `{"spec":{"switchover":{"id":"i1"}}}`, ask: true},
		"SwitchoverTo":     {reason: "A person chooses.", act: switchover("orders-b"), status: running, want: `{"spec":{"switchover":{"id":"i1","to":"orders-b"}}}`, ask: true},
		"SwitchoverAgain":  {reason: "The member of the request before does not stay.", act: switchover(""), spec: `switchover: {id: i0, to: orders-b}`, status: running, want: `{"spec":{"switchover":{"id":"i1","to":null}}}`, manifest: "# Remove spec.switchover.to.\nspec:\n  switchover:\n    id: i1\n", ask: true},
		"SwitchoverLeader": {reason: "It leads.", act: switchover("orders-a"), status: running, err: "member orders-a is the leader already"},
		"SwitchoverBehind": {reason: "Commits are waited for by one standby.", act: switchover("orders-c"), status: running, err: "member orders-c is not a synchronous standby and may lack commits"},
		"SwitchoverAsync":  {reason: "No commit waits for a standby.", act: switchover("orders-c"), spec: `availability: {durability: Asynchronous}`, status: running, want: `{"spec":{"switchover":{"id":"i1","to":"orders-c"}}}`, ask: true},
		"SwitchoverNobody": {reason: "Names of members are known.", act: switchover("orders-z"), status: running, err: "there is no member orders-z: choose one of orders-a, orders-b, orders-c"},
		"SwitchoverAlone":  {reason: "There is nobody else.", act: switchover(""), status: alone, err: "it has one member: raise spec.replicas first"},
		"SwitchoverFrozen": {reason: "A freeze holds it.", act: switchover(""), spec: `maintenance: {freeze: {until: "2026-12-01T00:00:00Z"}}`, status: running, err: "spec.maintenance.freeze holds it until 2026-12-01T00:00:00Z"},
		"SwitchoverDown":   {reason: "There is no leader.", act: switchover(""), status: `{phase: Down, conditions: [{type: Available, status: "False", reason: NoLeader, message: "no member leads", lastTransitionTime: null}]}`, err: "it has no leader: no member leads"},
		"SwitchoverAsleep": {reason: "No member runs.", act: switchover(""), spec: `hibernated: true`, status: `{phase: Hibernated}`, err: "it is hibernated: wake it first"},
		"Backup":           {reason: "One field.", act: backup, spec: `backup: {enabled: true, schedule: "0 1 * * *"}`, status: running, want: `{"spec":{"backup":{"now":"i1"}}}`},
		"BackupOff":        {reason: "An id would switch backups on.", act: backup, status: running, err: "it has no backups: set spec.backup"},
		"BackupDisabled":   {reason: "It would wait for ever.", act: backup, spec: `backup: {enabled: false}`, status: running, err: "it has no backups"},
		"Restore":          {reason: "A moment within what is kept.", act: restore(Moment{At: "2026-11-26T08:59:00Z"}, 0), spec: `backup: {}`, status: running, want: `{"spec":{"restore":{"at":"2026-11-26T08:59:00Z","id":"i1"}}}`, ask: true},
		"RestoreAgain": {
			reason: "Nothing of the request before stays.", act: restore(Moment{Latest: true}, 48*time.Hour), spec: "backup: {}\n  restore: {id: i0, at: \"2026-11-25T08:59:00Z\", keepOldFor: 1h}", status: running,
			want: `{"spec":{"restore":{"at":null,"id":"i1","keepOldFor":"48h0m0s"}}}`, ask: true,
		},
		"RestoreKept":      {reason: "How long data is kept is not taken over silently.", act: restore(Moment{Latest: true}, 0), spec: "backup: {}\n  restore: {id: i0, keepOldFor: 1h}", status: running, want: `{"spec":{"restore":{"id":"i1","keepOldFor":null}}}`, ask: true},
		"RestoreUndone":    {reason: "Of undo and id there is one.", act: restore(Moment{Latest: true}, 0), spec: "backup: {}\n  restore: {undo: i0}", status: running, want: `{"spec":{"restore":{"id":"i1","undo":null}}}`, ask: true},
		"RestorePoint":     {reason: "A moment by its name.", act: restore(Moment{Point: "3f2a9c1b7d"}, 0), spec: `backup: {}`, status: running, want: `{"spec":{"restore":{"id":"i1","restorePoint":"3f2a9c1b7d"}}}`, ask: true},
		"RestoreNoPoint":   {reason: "Names are known.", act: restore(Moment{Point: "0000000000"}, 0), spec: `backup: {}`, status: running, err: "is not among those that it reports: 3f2a9c1b7d"},
		"RestoreTooEarly":  {reason: "The window is known.", act: restore(Moment{At: "2026-11-19T00:00:00Z"}, 0), spec: `backup: {}`, status: running, err: "choose a moment from 2026-11-20T02:00:00Z to 2026-11-26T12:00:00Z"},
		"RestoreFuture":    {reason: "Nobody knows it.", act: restore(Moment{At: "2026-11-27T00:00:00Z"}, 0), spec: `backup: {}`, status: running, err: "cannot be restored: choose a moment"},
		"RestoreNoZone":    {reason: "Whose nine o'clock?", act: restore(Moment{At: "2026-11-26T08:59:00"}, 0), spec: `backup: {}`, status: running, err: "is no time with its zone"},
		"RestoreWhen":      {reason: "A moment is chosen, not guessed.", act: restore(Moment{}, 0), spec: `backup: {}`, status: running, err: "which moment?"},
		"RestoreTwoWays":   {reason: "One moment.", act: restore(Moment{Latest: true, At: "2026-11-26T08:59:00Z"}, 0), spec: `backup: {}`, status: running, err: "which moment?"},
		"RestoreKeepShort": {reason: "The schema has bounds.", act: restore(Moment{Latest: true}, time.Second), spec: `backup: {}`, status: running, err: "1s, must be from 1m to 720h"},
		"RestoreNoBackup":  {reason: "There is nothing to restore.", act: restore(Moment{Latest: true}, 0), spec: `backup: {}`, status: alone, err: "it has no backup yet"},
		"RestoreBusy":      {reason: "One at a time.", act: restore(Moment{Latest: true}, 0), spec: `backup: {}`, status: strings.Replace(running, "{phase", "{restore: {id: i0, phase: Filling}, phase", 1), err: "restore i0 is under way (Filling)"},
		"RestoreGap":       {reason: "Not every moment after a gap can be restored.", act: restore(Moment{At: "2026-11-26T08:59:00Z"}, 0), spec: `backup: {}`, status: strings.Replace(running, "backup: {", `backup: {gapAt: "2026-11-26T07:00:00Z", `, 1), err: "writes were lost for the archive at 2026-11-26T07:00:00Z"},
		"Undo":             {reason: "The request before is replaced.", act: undo, spec: `restore: {id: bad-deploy, at: "2026-11-26T08:59:00Z"}`, status: back, want: `{"spec":{"restore":{"at":null,"id":null,"undo":"bad-deploy"}}}`, manifest: "# Remove spec.restore.at.\n# Remove spec.restore.id.\nspec:\n  restore:\n    undo: bad-deploy\n", ask: true},
		"UndoNothing":      {reason: "Nothing was restored.", act: undo, status: running, err: "no restore is in effect"},
		"UndoTooLate":      {reason: "The data is gone.", act: undo, status: strings.Replace(back, "2026-11-27", "2026-11-25", 1), err: "is no longer kept"},
		"Hibernate":        {reason: "A field of the spec itself.", act: hibernate, status: running, want: `{"spec":{"hibernated":true}}`, ask: true},
		"HibernateTwice":   {reason: "It is so.", act: hibernate, spec: `hibernated: true`, status: running, done: "spec.hibernated is true already"},
		"Wake":             {reason: "Nobody is interrupted.", act: Wake, spec: `hibernated: true`, status: `{phase: Hibernated}`, want: `{"spec":{"hibernated":false}}`},
		"WakeRunning":      {reason: "It runs.", act: Wake, status: running, done: "it is not hibernated"},
		"Rotate":           {reason: "Consumers with their own id keep it.", act: rotate, spec: `consumers: [{name: api}, {name: own, credentials: {id: x}}]`, status: running, want: `{"spec":{"credentials":{"id":"i1"}}}`, ask: true},
		"RotateNobody":     {reason: "It would have no effect.", act: rotate, spec: `consumers: [{name: own, credentials: {id: x}}, {name: api, credentials: {id: y}}]`, status: running, err: "no consumer takes its id from spec.credentials"},
		"Reinitialize":     {reason: "A standby by name.", act: reinitialize("orders-c"), status: running, want: `{"spec":{"reinitialize":{"id":"i1","member":"orders-c"}}}`, ask: true},
		"ReinitLeader":     {reason: "All others copy it.", act: reinitialize("orders-a"), status: running, err: "switch over first"},
		"ReinitNobody":     {reason: "Names are known.", act: reinitialize("orders-z"), status: running, err: "use --member with one of orders-a, orders-b, orders-c"},
		"ReinitBusy":       {reason: "One copy at a time is missing.", act: reinitialize("orders-c"), status: strings.Replace(running, "{phase", "{reinitialize: {id: i0, member: orders-b, outcome: Copying}, phase", 1), err: "member orders-b is being copied"},
		"Fence":            {reason: "A standby by name.", act: fence("orders-c"), status: running, want: `{"spec":{"fence":{"id":"i1","member":"orders-c"}}}`, ask: true},
		"FenceLeader":      {reason: "Clients would wait.", act: fence("orders-a"), status: running, err: "switch over first"},
		"FenceNobody":      {reason: "Names are known.", act: fence("orders-z"), status: running, err: "use --member with one of orders-a, orders-b, orders-c"},
		"FenceTwice":       {reason: "It is so.", act: fence("orders-b"), status: strings.Replace(running, "{phase", "{fence: {id: i0, member: orders-b, outcome: Stopped}, phase", 1), done: "member orders-b is stopped already"},
		"FenceSecond":      {reason: "One at a time.", act: fence("orders-c"), status: strings.Replace(running, "{phase", "{fence: {id: i0, member: orders-b, outcome: Stopped}, phase", 1), err: "member orders-b is stopped"},
		"Unfence":          {reason: "Nobody is interrupted.", act: Unfence, spec: `fence: {id: i0, member: orders-b}`, status: running, want: `{"spec":{"fence":null}}`},
		"UnfenceNobody":    {reason: "It runs.", act: Unfence, status: running, done: "no member is kept stopped"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := from[v1alpha1.Database](t, `
metadata: {name: orders, namespace: demo, generation: 2, resourceVersion: "77"}
spec:
  engine: postgres
  version: "17"
  replicas: 3
  storage: 10Gi
  `+tc.spec+`
status: `+tc.status)
			plan, err := tc.act(d)
			check(t, tc.reason, plan, err, d.ResourceVersion, tc.want, tc.manifest, tc.done, tc.err, tc.ask)
		})
	}
}

func switchover(to string) func(*v1alpha1.Database) (ofDatabase, error) {
	return func(d *v1alpha1.Database) (ofDatabase, error) { return Switchover(d, to, "i1", now) }
}

func backup(d *v1alpha1.Database) (ofDatabase, error) { return Backup(d, "i1") }

func restore(m Moment, keep time.Duration) func(*v1alpha1.Database) (ofDatabase, error) {
	return func(d *v1alpha1.Database) (ofDatabase, error) { return Restore(d, m, keep, "i1", now) }
}

func undo(d *v1alpha1.Database) (ofDatabase, error)      { return Undo(d, now) }
func hibernate(d *v1alpha1.Database) (ofDatabase, error) { return Hibernate(d, now) }
func rotate(d *v1alpha1.Database) (ofDatabase, error)    { return Rotate(d, "i1") }

func reinitialize(member string) func(*v1alpha1.Database) (ofDatabase, error) {
	return func(d *v1alpha1.Database) (ofDatabase, error) { return Reinitialize(d, member, "i1") }
}

func fence(member string) func(*v1alpha1.Database) (ofDatabase, error) {
	return func(d *v1alpha1.Database) (ofDatabase, error) { return Fence(d, member, "i1") }
}

// TestStopped: objects on which no edit has an effect are refused by every act.
func TestStopped(t *testing.T) {
	deleted := reco(t, bySteps, stepping)
	deleted.DeletionTimestamp = &deleted.CreationTimestamp
	paused := reco(t, bySteps, stepping)
	paused.Annotations = map[string]string{"crossplane.io/paused": "true"}
	for want, a := range map[string]*v1alpha1.Algorithm{"it is being deleted": deleted, "stops Crossplane": paused} {
		for name, act := range map[string]func(*v1alpha1.Algorithm) (ofAlgorithm, error){"pause": Pause, "resume": Resume, "approve": approve(0), "promote": Promote, "abort": Abort, "retry": Retry} {
			if _, err := act(a); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want error %q, got %v", name, want, err)
			}
		}
	}
}

// TestOutcome: an outcome is only told from a status that knows of the request.
func TestOutcome(t *testing.T) {
	base := func(status string) *v1alpha1.Database {
		return from[v1alpha1.Database](t, "metadata: {name: orders, generation: 2}\nspec: {engine: postgres, version: \"17\", replicas: 3, storage: 10Gi, backup: {}, restore: {id: bad-deploy}, consumers: [{name: api}, {name: own}]}\nstatus: "+status)
	}
	plan := func(p ofDatabase, err error) ofDatabase {
		if err != nil {
			t.Fatal(err)
		}

		return p
	}
	is := plan(Switchover(base(running), "", "i1", now))
	taken := plan(Backup(base(running), "i1"))
	gone := plan(Restore(base(running), Moment{Latest: true}, 0, "i1", now))
	undone := plan(Undo(base(back), now))
	turned := plan(Rotate(base(running), "i1"))
	copied := plan(Reinitialize(base(running), "orders-c", "i1"))
	stopped := plan(Fence(base(running), "orders-c", "i1"))
	cases := []struct {
		reason string
		plan   ofDatabase
		status string
		want   Progress
	}{
		{"The outcome of the request before is none.", is, `{switchover: {id: i0, outcome: Done}}`, Progress{Message: "the request has not been read yet"}},
		{"The members were asked.", is, `{switchover: {id: i1, outcome: Asked, from: orders-a, to: orders-b}}`, Progress{Message: "Asked: member orders-a to orders-b"}},
		{"It is done.", is, `{switchover: {id: i1, outcome: Done, from: orders-a, to: orders-b}}`, Progress{Done: true, Message: "Done: member orders-a to orders-b"}},
		{"It failed.", is, `{switchover: {id: i1, outcome: Failed, from: orders-a, to: orders-b, message: refused}}`, Progress{Failed: true, Message: "Failed: member orders-a to orders-b; refused"}},
		{"The backup of before.", taken, running, Progress{Message: "the backup is being taken"}},
		{"Another backup.", taken, `{backup: {last: {id: F2, type: incr, took: 3s}}}`, Progress{Done: true, Message: "backup F2 was taken: incr in 3s"}},
		{"It says which backup failed.", taken, `{conditions: [{type: BackupFresh, status: "False", reason: BackupFailed, message: "the backup of spec.backup.now \"i1\" failed", lastTransitionTime: null}]}`, Progress{Failed: true, Message: `the backup of spec.backup.now "i1" failed`}},
		{"It fills.", gone, `{restore: {id: i1, phase: Filling, message: copying}}`, Progress{Message: "Filling: copying"}},
		{"It is done.", gone, `{restore: {id: i1, phase: Done}}`, Progress{Done: true, Message: "Done"}},
		{"It never will be.", gone, `{restore: {id: i1, phase: Waiting}, conditions: [{type: Restored, status: "False", reason: RestoreImpossible, lastTransitionTime: null}]}`, Progress{Failed: true, Message: "Waiting"}},
		{"The restore is not its undoing.", undone, back, Progress{Message: "the request has not been read yet"}},
		{"Undone.", undone, `{restore: {id: bad-deploy, undo: true, phase: Undone}}`, Progress{Done: true, Message: "Undone"}},
		{"No login was replaced.", turned, running, Progress{Message: "consumers api, own still have their login: see the condition CredentialsFresh"}},
		{
			"All are.", turned, `{conditions: [{type: Synced, status: "True", reason: ReconcileSuccess, observedGeneration: 2, lastTransitionTime: null}], connectionSecrets: [{consumer: api, secret: s, ready: true, generation: 2}, {consumer: own, secret: o, ready: true, generation: 2}]}`,
			Progress{Done: true, Message: "every Secret has its next login"},
		},
		{"A copy.", copied, `{reinitialize: {id: i1, member: orders-c, outcome: Copying}}`, Progress{Message: "Copying"}},
		{"It stops.", stopped, `{fence: {id: i1, member: orders-c, outcome: Waiting, message: no leader}}`, Progress{Message: "Waiting: no leader"}},
		{"It is stopped.", stopped, `{fence: {id: i1, member: orders-c, outcome: Stopped}}`, Progress{Done: true, Message: "Stopped"}},
		{"Refused.", copied, `{reinitialize: {id: i1, member: orders-c, outcome: Refused, message: it leads}}`, Progress{Failed: true, Message: "Refused: it leads"}},
	}
	for _, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.plan.Outcome(base(tc.status))); diff != "" {
			t.Errorf("%s\noutcome: -want, +got:\n%s", tc.reason, diff)
		}
	}
}
