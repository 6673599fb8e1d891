// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// ofDatabase is a plan for a Database.
type ofDatabase = Plan[*v1alpha1.Database]

// frozen refuses what spec.maintenance.freeze holds.
func frozen(d *v1alpha1.Database, now time.Time) error {
	if m := d.Spec.Maintenance; m != nil && m.Freeze != nil && m.Freeze.Until.After(now) {
		return fmt.Errorf("spec.maintenance.freeze holds it until %s: wait, or set another time there", clock(m.Freeze.Until.Time))
	}

	return nil
}

// awake refuses acts that need members.
func awake(d *v1alpha1.Database) error {
	if d.Spec.Hibernated || d.Status.Phase == v1alpha1.DatabaseHibernated {
		return errors.New("it is hibernated: wake it first")
	}
	if d.Status.Leader == "" {
		return fmt.Errorf("it has no leader: %s", because(d, v1alpha1.TypeAvailable))
	}

	return nil
}

// because is the message of a condition.
func because(d *v1alpha1.Database, name xpv2.ConditionType) string {
	if c := d.Status.GetCondition(name); c.Message != "" {
		return c.Message
	}

	return "see the condition " + string(name)
}

// lead reports whether a member can become the leader now, or why not. The planner has the last word: it also knows cordoned nodes.
func lead(d *v1alpha1.Database, m v1alpha1.MemberStatus) error {
	asynchronous := d.Spec.Availability != nil && d.Spec.Availability.Durability == v1alpha1.DurabilityAsynchronous
	standing := d.Spec.From != nil && d.Spec.From.Backup != nil && d.Spec.From.Backup.Follow && d.Spec.Promote == nil
	switch {
	case m.Name == d.Status.Leader:
		return fmt.Errorf("member %s is the leader already: choose another member", m.Name)
	case m.State != observev1alpha1.MemberRunning && m.State != observev1alpha1.MemberStreaming:
		return fmt.Errorf("member %s is %s: wait until it follows the leader, or choose another member", m.Name, orUnknown(m.State))
	case !asynchronous && !standing && m.Role != observev1alpha1.RoleSyncStandby:
		return fmt.Errorf("member %s is not a synchronous standby and may lack commits: wait, or choose another member", m.Name)
	default:
		return nil
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "Unknown"
	}

	return s
}

// Switchover makes another member the leader: to, or any that can be.
func Switchover(d *v1alpha1.Database, to, id string, now time.Time) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), frozen(d, now), awake(d)); err != nil {
		return ofDatabase{}, err
	}
	if err := candidates(d, to); err != nil {
		return ofDatabase{}, err
	}
	set := map[string]any{"id": id}
	whom := "another member"
	if to != "" {
		set["to"], whom = to, "member "+to
	}
	if s := d.Spec.Switchover; s != nil {
		set = remove(set, map[string]bool{"to": s.To != ""})
	}

	return ofDatabase{
		Ask:   true,
		Words: []string{fmt.Sprintf("Member %s hands over to %s. Writes pause for a few seconds, and open connections end.", d.Status.Leader, whom)},
		Spec:  map[string]any{"switchover": set},
		Outcome: func(d *v1alpha1.Database) Progress {
			s := d.Status.Switchover
			if s == nil || s.ID != id {
				return Progress{Message: "the request has not been read yet"}
			}
			words := strings.TrimSpace(fmt.Sprintf("%s: member %s to %s; %s", s.Outcome, orUnknown(s.From), orUnknown(s.To), s.Message))
			words = strings.TrimSuffix(words, ";")

			return Progress{
				Done: s.Outcome == observev1alpha1.SwitchoverDone, Message: words,
				Failed: s.Outcome == observev1alpha1.SwitchoverFailed || s.Outcome == v1alpha1.SwitchoverSkipped,
			}
		},
	}, nil
}

// candidates for the next leader: refuse when there is none.
func candidates(d *v1alpha1.Database, to string) error {
	var can, cannot []string
	for _, m := range d.Status.Members {
		err := lead(d, m)
		if m.Name == to {
			return err
		}
		if err != nil {
			cannot = append(cannot, err.Error())
			continue
		}
		can = append(can, m.Name)
	}
	switch {
	case to != "":
		return fmt.Errorf("there is no member %s: choose one of %s", to, strings.Join(memberNames(d), ", "))
	case len(can) == 0 && len(d.Status.Members) < 2:
		return errors.New("it has one member: raise spec.replicas first")
	case len(can) == 0:
		return fmt.Errorf("no member can become the leader now: %s", strings.Join(cannot, "; "))
	default:
		return nil
	}
}

func memberNames(d *v1alpha1.Database) []string {
	names := make([]string, 0, len(d.Status.Members))
	for _, m := range d.Status.Members {
		names = append(names, m.Name)
	}

	return names
}

// backedUp refuses a Database without backups.
func backedUp(d *v1alpha1.Database) error {
	if b := d.Spec.Backup; b == nil || b.Enabled != nil && !*b.Enabled {
		return errors.New("it has no backups: set spec.backup, and spec.backup.enabled to true")
	}

	return nil
}

// Backup at once.
func Backup(d *v1alpha1.Database, id string) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), backedUp(d), awake(d)); err != nil {
		return ofDatabase{}, err
	}
	before := last(d)

	return ofDatabase{
		Words: []string{"A backup is taken. Clients do not notice it."},
		Spec:  map[string]any{"backup": map[string]any{"now": id}},
		Outcome: func(d *v1alpha1.Database) Progress {
			if label := last(d); label != "" && label != before {
				b := d.Status.Backup.Last

				return Progress{Done: true, Message: strings.Join(strings.Fields(fmt.Sprintf("backup %s was taken: %s %s in %s", b.ID, b.Type, b.Size, orUnknown(b.Took))), " ")}
			}
			c := d.Status.GetCondition(v1alpha1.TypeBackupFresh)
			if c.Reason == v1alpha1.ReasonBackupFailed && strings.Contains(c.Message, id) {
				return Progress{Failed: true, Message: c.Message}
			}

			return Progress{Message: "the backup is being taken"}
		},
	}, nil
}

// last backup, or nothing.
func last(d *v1alpha1.Database) string {
	if b := d.Status.Backup; b != nil && b.Last != nil {
		return b.Last.ID
	}

	return ""
}

// A Moment to restore: exactly one of its fields is set.
type Moment struct {
	// At is a time in RFC 3339.
	At string
	// Point is the name of a restore point.
	Point string
	// Latest is the latest moment in the archive.
	Latest bool
}

// moment checks that it can be restored, and says it.
func moment(d *v1alpha1.Database, m Moment, now time.Time) (string, error) {
	if !m.one() {
		return "", errors.New("which moment? Name one time, one restore point, or the latest moment")
	}
	b := d.Status.Backup
	if b == nil || b.Last == nil || b.EarliestRestorable == nil {
		return "", errors.New("it has no backup yet: take one first")
	}
	switch {
	case m.Latest && b.LatestRestorable != nil:
		return "the latest moment in its archive, " + clock(b.LatestRestorable.Time), nil
	case m.Latest:
		return "the latest moment in its archive", nil
	case m.Point != "":
		return pointOf(b, m.Point)
	default:
		return timeOf(b, m.At, now)
	}
}

// one reports whether it names exactly one moment.
func (m Moment) one() bool {
	given := 0
	for _, set := range []bool{m.At != "", m.Point != "", m.Latest} {
		if set {
			given++
		}
	}

	return given == 1
}

// pointOf checks that a restore point is reported, and says it.
func pointOf(b *v1alpha1.BackupStatus, point string) (string, error) {
	names := make([]string, 0, len(b.RestorePoints))
	for _, p := range b.RestorePoints {
		if p.Name == point {
			return "restore point " + point, nil
		}
		names = append(names, p.Name)
	}

	return "", fmt.Errorf("restore point %q is not among those that it reports: %s", point, orNone(names))
}

// timeOf checks that a time can be restored, and says it.
func timeOf(b *v1alpha1.BackupStatus, text string, now time.Time) (string, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", fmt.Errorf("moment %q is no time with its zone, for instance %s", text, clock(now))
	}
	first, end := b.EarliestRestorable.Time, now
	if b.LatestRestorable != nil {
		end = b.LatestRestorable.Time
	}
	if at.Before(first) || at.After(end) {
		return "", fmt.Errorf("moment %s cannot be restored: choose a moment from %s to %s", text, clock(first), clock(end))
	}
	if gap := b.GapAt; gap != nil && at.After(gap.Time) && (b.Last.At == nil || gap.After(b.Last.At.Time)) {
		return "", fmt.Errorf("moment %s cannot be restored: writes were lost for the archive at %s: choose an earlier moment", text, clock(gap.Time))
	}

	return text, nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}

	return strings.Join(list, ", ")
}

// Restore the data of a moment in place.
func Restore(d *v1alpha1.Database, m Moment, keepOldFor time.Duration, id string, now time.Time) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), backedUp(d), frozen(d, now), awake(d), idle(d)); err != nil {
		return ofDatabase{}, err
	}
	when, err := moment(d, m, now)
	if err != nil {
		return ofDatabase{}, err
	}
	set := map[string]any{"id": id}
	if m.At != "" {
		set["at"] = m.At
	}
	if m.Point != "" {
		set["restorePoint"] = m.Point
	}
	kept := 24 * time.Hour
	if keepOldFor != 0 {
		if keepOldFor < time.Minute || keepOldFor > 720*time.Hour {
			return ofDatabase{}, fmt.Errorf("the time to keep the present data, %s, must be from 1m to 720h", keepOldFor)
		}
		kept, set["keepOldFor"] = keepOldFor, keepOldFor.String()
	}

	return ofDatabase{
		Ask: true,
		Words: []string{
			fmt.Sprintf("The data of %s comes back under the same names. %d new members restore it beside the present ones; the cluster needs room for them.", when, d.Spec.Replicas),
			"Then the present members stop and clients are switched: writes pause for some seconds, and open connections end.",
			fmt.Sprintf("Commits after that moment are then only in the present data, which is kept for %s: undo goes back to it.", kept),
		},
		Spec:    map[string]any{"restore": remove(set, requested(d))},
		Outcome: restored(id, false),
	}, nil
}

// idle refuses while another restore or an upgrade is under way.
func idle(d *v1alpha1.Database) error {
	r := d.Status.Restore
	if r == nil {
		return nil
	}
	switch r.Phase {
	case v1alpha1.RestoreFilling, v1alpha1.RestoreFencing:
		return fmt.Errorf("restore %s is under way (%s): wait until it is over, or remove spec.restore to cancel it", r.ID, r.Phase)
	default:
		return nil
	}
}

// requested are the fields of the last request.
func requested(d *v1alpha1.Database) map[string]bool {
	r := d.Spec.Restore
	if r == nil {
		return nil
	}

	return map[string]bool{"id": r.ID != "", "at": r.At != "", "restorePoint": r.RestorePoint != "", "keepOldFor": r.KeepOldFor != nil, "undo": r.Undo != ""}
}

func restored(id string, undo bool) func(*v1alpha1.Database) Progress {
	return func(d *v1alpha1.Database) Progress {
		r := d.Status.Restore
		if r == nil || r.ID != id || undo && !r.Undo {
			return Progress{Message: "the request has not been read yet"}
		}
		words := string(r.Phase)
		if r.Message != "" {
			words += ": " + r.Message
		}
		c := d.Status.GetCondition(v1alpha1.TypeRestored)
		done := v1alpha1.RestoreDone
		if undo {
			done = v1alpha1.RestoreUndone
		}

		return Progress{
			Done: r.Phase == done, Message: words,
			Failed: r.Phase == v1alpha1.RestoreSkipped || r.Phase == v1alpha1.RestoreWaiting && c.Reason == v1alpha1.ReasonRestoreImpossible,
		}
	}
}

// Undo the latest restore.
func Undo(d *v1alpha1.Database, now time.Time) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), frozen(d, now), idle(d)); err != nil {
		return ofDatabase{}, err
	}
	r, g := d.Status.Restore, d.Status.Generation
	if r == nil || r.Phase != v1alpha1.RestoreDone || g == nil || g.Active != r.To {
		return ofDatabase{}, errors.New("no restore is in effect that could be undone")
	}
	i := slices.IndexFunc(g.Kept, func(k v1alpha1.KeptGeneration) bool { return k.Generation == r.From })
	if i < 0 || !g.Kept[i].Until.After(now) {
		return ofDatabase{}, fmt.Errorf("the data from before restore %s is no longer kept: another Database can restore it with spec.from", r.ID)
	}

	return ofDatabase{
		Ask: true,
		Words: []string{
			fmt.Sprintf("Generation %d becomes live again, with every commit that it had before restore %s.", r.From, r.ID),
			fmt.Sprintf("Commits since the restore are then only in generation %d, which is kept. Writes pause for some seconds, and open connections end.", r.To),
		},
		Spec:    map[string]any{"restore": remove(map[string]any{"undo": r.ID}, requested(d))},
		Outcome: restored(r.ID, true),
	}, nil
}

// Hibernate stops all members.
func Hibernate(d *v1alpha1.Database, now time.Time) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), frozen(d, now), idle(d)); err != nil {
		return ofDatabase{}, err
	}
	if d.Spec.Hibernated {
		return ofDatabase{Done: "spec.hibernated is true already"}, nil
	}

	return ofDatabase{
		Ask:   true,
		Words: []string{"All members stop, the leader last: clients cannot connect until it is woken. Data, Secrets and Services stay. No backups are taken meanwhile."},
		Spec:  map[string]any{"hibernated": true},
		Outcome: func(d *v1alpha1.Database) Progress {
			return Progress{Done: d.Status.Phase == v1alpha1.DatabaseHibernated, Message: fmt.Sprintf("the Database is %s: %s", d.Status.Phase, because(d, v1alpha1.TypeUpdated))}
		},
	}, nil
}

// Wake starts the members of a hibernated Database.
func Wake(d *v1alpha1.Database) (ofDatabase, error) {
	if err := live(d, d.Status.ConditionedStatus); err != nil {
		return ofDatabase{}, err
	}
	if !d.Spec.Hibernated {
		return ofDatabase{Done: "it is not hibernated"}, nil
	}

	return ofDatabase{
		Words: []string{"The last leader starts first, and the others follow."},
		Spec:  map[string]any{"hibernated": false},
		Outcome: func(d *v1alpha1.Database) Progress {
			return Progress{Done: d.Status.Phase == v1alpha1.DatabaseRunning, Message: fmt.Sprintf("the Database is %s: %s", d.Status.Phase, because(d, v1alpha1.TypeUpdated))}
		},
	}, nil
}

// Rotate the logins of consumers.
func Rotate(d *v1alpha1.Database, id string) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), awake(d)); err != nil {
		return ofDatabase{}, err
	}
	own := map[string]bool{}
	var others []string
	for _, c := range d.Spec.Consumers {
		if c.Credentials != nil && c.Credentials.ID != "" {
			own[c.Name] = true
			others = append(others, c.Name)
		}
	}
	before := map[string]int64{}
	var names []string
	for _, s := range d.Status.ConnectionSecrets {
		if !own[s.Consumer] {
			before[s.Consumer] = max(s.Generation, 1)
			names = append(names, s.Consumer)
		}
	}
	if len(names) == 0 {
		return ofDatabase{}, errors.New("no consumer takes its id from spec.credentials: set credentials.id of the consumer in spec.consumers")
	}
	overlap := "24h"
	if c := d.Spec.Credentials; c != nil && c.Overlap != "" {
		overlap = c.Overlap
	}
	words := []string{fmt.Sprintf("Consumers %s get another login in their Secrets. The present one stays valid for at most %s: clients must read their Secret again until then.", strings.Join(names, ", "), overlap)}
	if len(others) > 0 {
		words = append(words, fmt.Sprintf("Consumers %s have an id of their own in spec.consumers and keep their login.", strings.Join(others, ", ")))
	}

	return ofDatabase{
		Ask: true, Words: words,
		Spec: map[string]any{"credentials": map[string]any{"id": id}},
		Outcome: func(d *v1alpha1.Database) Progress {
			var left []string
			for _, s := range d.Status.ConnectionSecrets {
				if g, ok := before[s.Consumer]; ok && s.Generation <= g {
					left = append(left, s.Consumer)
				}
			}
			if len(left) == 0 && current(d, d.Status.ConditionedStatus) {
				return Progress{Done: true, Message: "every Secret has its next login"}
			}

			return Progress{Message: fmt.Sprintf("consumers %s still have their login: %s", orNone(left), because(d, v1alpha1.TypeCredentialsFresh))}
		},
	}, nil
}

// Reinitialize copies a standby again.
func Reinitialize(d *v1alpha1.Database, member, id string) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), awake(d)); err != nil {
		return ofDatabase{}, err
	}
	if !slices.Contains(memberNames(d), member) {
		return ofDatabase{}, fmt.Errorf("there is no member %q: use --member with one of %s", member, strings.Join(memberNames(d), ", "))
	}
	if member == d.Status.Leader {
		return ofDatabase{}, fmt.Errorf("member %s is the leader, whose data the others copy: switch over first", member)
	}
	if r := d.Status.Reinitialize; r != nil && r.Outcome == members.ReinitializeCopying {
		return ofDatabase{}, fmt.Errorf("member %s is being copied: wait until that is over", r.Member)
	}
	words := []string{fmt.Sprintf("The data of member %s is removed and copied again. Until then there is one copy less.", member)}
	if c := d.Status.GetCondition(v1alpha1.TypeHighlyAvailable); c.Status != corev1.ConditionTrue {
		words = append(words, "The Database is not highly available now: "+because(d, v1alpha1.TypeHighlyAvailable))
	}

	return ofDatabase{
		Ask: true, Words: words,
		Spec: map[string]any{"reinitialize": map[string]any{"id": id, "member": member}},
		Outcome: func(d *v1alpha1.Database) Progress {
			r := d.Status.Reinitialize
			if r == nil || r.ID != id {
				return Progress{Message: "the request has not been read yet"}
			}
			words := r.Outcome
			if r.Message != "" {
				words += ": " + r.Message
			}

			return Progress{
				Done: r.Outcome == members.ReinitializeDone, Message: words,
				Failed: r.Outcome == members.ReinitializeRefused || r.Outcome == members.ReinitializeSkipped,
			}
		},
	}, nil
}

// Fence keeps a standby stopped.
func Fence(d *v1alpha1.Database, member, id string) (ofDatabase, error) {
	if err := errors.Join(live(d, d.Status.ConditionedStatus), awake(d)); err != nil {
		return ofDatabase{}, err
	}
	if !slices.Contains(memberNames(d), member) {
		return ofDatabase{}, fmt.Errorf("there is no member %q: use --member with one of %s", member, strings.Join(memberNames(d), ", "))
	}
	if member == d.Status.Leader {
		return ofDatabase{}, fmt.Errorf("member %s is the leader, and clients would wait for another one: switch over first", member)
	}
	if f := d.Status.Fence; f != nil && f.Outcome == members.FenceStopped {
		if f.Member == member {
			return ofDatabase{Done: fmt.Sprintf("member %s is stopped already", member)}, nil
		}
		return ofDatabase{}, fmt.Errorf("member %s is stopped: start it first, with unfence", f.Member)
	}
	words := []string{fmt.Sprintf("The server of member %s stops, and its data stays as it is, until unfence. It is not promoted meanwhile.", member)}
	if c := d.Status.GetCondition(v1alpha1.TypeHighlyAvailable); c.Status != corev1.ConditionTrue {
		words = append(words, "The Database is not highly available now: "+because(d, v1alpha1.TypeHighlyAvailable))
	}

	return ofDatabase{
		Ask: true, Words: words,
		Spec: map[string]any{"fence": map[string]any{"id": id, "member": member}},
		Outcome: func(d *v1alpha1.Database) Progress {
			f := d.Status.Fence
			if f == nil || f.ID != id {
				return Progress{Message: "the request has not been read yet"}
			}
			words := f.Outcome
			if f.Message != "" {
				words += ": " + f.Message
			}

			return Progress{
				Done: f.Outcome == members.FenceStopped, Message: words,
				Failed: f.Outcome == members.FenceRefused || f.Outcome == members.FenceSkipped,
			}
		},
	}, nil
}

// Unfence starts the member again that is kept stopped.
func Unfence(d *v1alpha1.Database) (ofDatabase, error) {
	if err := live(d, d.Status.ConditionedStatus); err != nil {
		return ofDatabase{}, err
	}
	f := d.Spec.Fence
	if f == nil {
		return ofDatabase{Done: "no member is kept stopped"}, nil
	}

	return ofDatabase{
		Words: []string{fmt.Sprintf("Member %s starts again, and gets what it missed.", f.Member)},
		Spec:  map[string]any{"fence": nil},
		Outcome: func(d *v1alpha1.Database) Progress {
			i := slices.IndexFunc(d.Status.Members, func(m v1alpha1.MemberStatus) bool { return m.Name == f.Member })

			return Progress{
				Done:    d.Status.Fence == nil && i >= 0 && d.Status.Members[i].State == "Streaming",
				Message: fmt.Sprintf("member %s starts: %s", f.Member, because(d, v1alpha1.TypeHighlyAvailable)),
			}
		},
	}, nil
}
