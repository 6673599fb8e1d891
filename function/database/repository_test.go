// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// toVolume is a Database whose backups go to a volume.
const toVolume = `{to: {volume: {size: 150Gi, storageClassName: archive}}}`

// repositoryObjects are the names of all that a volume of backups takes.
var repositoryObjects = []string{
	names.Repository, names.RepositoryCertificate, names.RepositoryClientCertificate, names.RepositoryNetworkPolicy, names.RepositoryService, names.RepositoryVolumeClaim,
}

// What there is of some objects.
const (
	hasAll  = "all of them"
	hasNone = "none of them"
)

// has reports whether there are all of some objects, or none.
func (w *world) has(names ...string) string {
	w.t.Helper()
	n := 0
	for _, name := range names {
		if w.request.Observed[name] != nil {
			n++
		}
	}
	switch n {
	case 0:
		return hasNone
	case len(names):
		return hasAll
	default:
		return fmt.Sprintf("%d of %d", n, len(names))
	}
}

// opens is the Secret that opens where the backups of a member go.
func (w *world) bucketSecrets(letter string) string {
	return facts.SecretOf(compose.List(w.request.Observed[names.MemberPrefix+letter].Map(), "spec", "template", "spec", "volumes"), names.VolumeBackup)
}

func TestVolume(t *testing.T) {
	w := running(t, withBackup(`{verify: {}, to: {volume: {size: 150Gi, storageClassName: archive}}}`))
	w.backup = wellBackedUp()
	w.backup.Verification = observev1alpha1.VerificationReport{Asked: true, Ended: "2026-11-20T07:00:00Z", Passed: observev1alpha1.VerificationPassed{Backup: "20261120-060000F", At: "2026-11-20T07:00:00Z"}}
	w.backup.Repository = observev1alpha1.RepositoryReport{Disk: "Ok", UsedPercent: 20, FileSystem: "153000Mi"}
	w.react()
	w.pass()
	if w.has(repositoryObjects...) != hasAll || w.has(names.BackupBucket) != hasNone {
		t.Errorf("there are %v", compose.SortedKeys(w.request.Observed))
	}
	host := "orders-db-repository.shop.svc"
	if got := w.memberTold().Backup.Repository; got != host {
		t.Errorf("members are told of the repository %q", got)
	}
	if got := w.bucketSecrets("a"); got != "orders-db-pg-repository" {
		t.Errorf("members open it with Secret %q", got)
	}

	// Who asks for a backup neither reads nor writes one.
	cron := w.request.Observed[names.Backup].Map()
	if got := facts.SecretOf(compose.List(cron, "spec", "jobTemplate", "spec", "template", "spec", "volumes"), names.VolumeBackup); got != "" {
		t.Errorf("who asks for a backup has Secret %q", got)
	}
	server := w.request.Observed[names.RepositoryCertificate].Map()
	if compose.Text(server, "spec", "commonName") != "backup" || !slices.Contains(compose.List(server, "spec", "dnsNames"), any(host)) {
		t.Errorf("the host shows %v", server["spec"])
	}
	claim, _ := compose.List(w.request.Observed[names.Repository].Map(), "spec", "volumeClaimTemplates")[0].(map[string]any)
	got := map[string]any{
		"class": compose.Text(claim, "spec", "storageClassName"), "size": compose.Text(claim, "spec", "resources", "requests", "storage"),
		"labels": compose.Map(claim, "metadata", "labels"),
		"kept":   compose.Text(w.request.Observed[names.Repository].Map(), "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"),
	}
	want := map[string]any{"class": "archive", "size": "150Gi", "kept": "Retain", "labels": map[string]any{
		observev1alpha1.LabelDatabase: "orders-db.repository", observev1alpha1.LabelMember: "orders-db-repository",
		observev1alpha1.LabelIdentity: "repository", names.LabelRepositoryOf: "orders-db",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the claim: -want, +got:\n%s", diff)
	}
	p := w.plan()
	for _, c := range p.Conditions {
		if c.Status != "True" {
			t.Errorf("condition %s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if diff := cmp.Diff(&v1alpha1.BackupVolumeStatus{Claim: "data-orders-db-repository-0", Size: "150Gi", UsedPercent: 20}, told(t, p).Backup.Volume); diff != "" {
		t.Errorf("the status: -want, +got:\n%s", diff)
	}
	if risks := strings.Join(told(t, p).Resilience.Risks, "; "); !strings.Contains(risks, "destroys all backups") {
		t.Errorf("that all backups are in one volume is not told: %s", risks)
	}
}

// TestVolumePeers: nobody but who has to reaches the host of the volume, and it nobody but members.
func TestVolumePeers(t *testing.T) {
	w := running(t, withBackup(`{verify: {}, to: {volume: {}}}`))
	from := func(policy string, port int) []string {
		var out []string
		for _, r := range compose.List(w.request.Observed[policy].Map(), "spec", "ingress") {
			rule, _ := r.(map[string]any)
			if first, _ := compose.List(rule, "ports")[0].(map[string]any); compose.Number(first, 0, "port") != int64(port) {
				continue
			}
			for _, p := range compose.List(rule, "from") {
				peer, _ := p.(map[string]any)
				for key, value := range compose.Map(peer, "podSelector", "matchLabels") {
					out = append(out, fmt.Sprintf("%s=%v", key, value))
				}
			}
		}
		slices.Sort(out)
		return out
	}
	readers := []string{"capstan.dev/copy-of=orders-db", "capstan.dev/database=orders-db", "capstan.dev/verification-of=orders-db"}
	for name, tc := range map[string]struct {
		reason, policy string
		port           int
		want           []string
	}{
		"Archive": {"Members archive, and others restore.", names.RepositoryNetworkPolicy, 8432, readers},
		"Backups": {"Backups are asked for.", names.RepositoryNetworkPolicy, 8433, append([]string{"capstan.dev/backup-of=orders-db"}, readers...)},
		"Members": {"The host alone reads members.", names.NetworkPolicy, 8432, []string{"capstan.dev/repository-of=orders-db"}},
	} {
		if diff := cmp.Diff(tc.want, from(tc.policy, tc.port)); diff != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, diff)
		}
	}
	verify, _ := compose.List(w.request.Observed[names.VerifyPolicy].Map(), "spec", "egress")[1].(map[string]any)
	if to := fmt.Sprint(verify["to"]); !strings.Contains(to, names.LabelRepositoryOf) {
		t.Errorf("who verifies reaches %s", to)
	}
}

// TestVolumeRemembered: what a Database has been given stays, whatever the platform says later and whatever else is lost; what
// the spec says counts first.
func TestVolumeRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec  string
		before, after inputv1alpha1.BackupDestination
		volume        bool
	}{
		"Default":    {"A bucket is the default.", `{}`, "", "", false},
		"Settings":   {"The platform says so.", `{}`, inputv1alpha1.BackupToVolume, inputv1alpha1.BackupToVolume, true},
		"ToBucket":   {"The volume stays.", `{}`, inputv1alpha1.BackupToVolume, inputv1alpha1.BackupToBucket, true},
		"ToVolume":   {"The bucket stays.", `{}`, "", inputv1alpha1.BackupToVolume, false},
		"OwnBucket":  {"The spec counts first.", `{to: {connectionSecretRef: {name: own}}}`, inputv1alpha1.BackupToVolume, inputv1alpha1.BackupToVolume, false},
		"OwnVolume":  {"The spec counts first.", `{to: {volume: {}}}`, "", "", true},
		"BucketGone": {"A Bucket that was removed by hand comes back.", `{}`, "", inputv1alpha1.BackupToVolume, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withBackup(tc.spec))
			w.request.Settings.Database.Backup.To = tc.before
			for range 6 {
				w.pass()
			}
			revisions := w.revisions()
			w.request.Settings.Database.Backup.To = tc.after
			if name == "BucketGone" {
				delete(w.request.Observed, names.BackupBucket)
			}
			for range 3 {
				w.pass()
			}
			if got := w.has(repositoryObjects...); got != map[bool]string{true: hasAll, false: hasNone}[tc.volume] {
				t.Errorf("%s: of a volume there is %s", tc.reason, got)
			}
			if got := w.memberTold().Backup.Repository != ""; got != tc.volume {
				t.Errorf("%s: members are told of a volume: %t", tc.reason, got)
			}
			if diff := cmp.Diff(revisions, w.revisions()); diff != "" {
				t.Errorf("%s: members are restarted: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVolumeMoved: backups can be moved by the spec, which restarts members once and leaves what there is.
func TestVolumeMoved(t *testing.T) {
	w := running(t, withBackup(`{}`))
	w.backup = wellBackedUp()
	w.edit(withBackup(toVolume))
	for range 8 {
		w.pass()
	}
	if w.bucketSecrets("a") != "orders-db-pg-repository" || w.has(names.BackupBucket) != hasAll {
		t.Errorf("members open %q; of the bucket there is %s", w.bucketSecrets("a"), w.has(names.BackupBucket))
	}

	// Nothing says where to, and they stay.
	w.edit(withBackup(`{}`))
	w.pass()
	if w.memberTold().Backup.Repository == "" {
		t.Error("backups went back to the bucket although nobody asked for it")
	}
	w.edit(withBackup(`{to: {connectionSecretRef: {name: own}}}`))
	w.pass()

	// Members that were not recreated yet go on where they can.
	if w.memberTold().Backup.Repository == "" {
		t.Error("members that have the volume only do not know where it is")
	}
	for range 8 {
		w.pass()
	}
	if w.memberTold().Backup.Repository != "" {
		t.Error("members that have the bucket only are told of the volume")
	}
	if w.bucketSecrets("a") != "own" || w.has(repositoryObjects...) != hasAll {
		t.Errorf("members open %q; of the volume there is %s", w.bucketSecrets("a"), w.has(repositoryObjects...))
	}
}

func TestVolumeConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		happen    func(*world)
		condition string
		want      []string
	}{
		"Full": {"What fills it is named, and what to do.", func(w *world) {
			w.backup.Repository = observev1alpha1.RepositoryReport{Disk: facts.DiskFull, UsedPercent: 95}
			w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveFailing, "No space left on device"
		}, "ArchiveHealthy", []string{"False", "RepositoryFull", "data-orders-db-repository-0", "spec.backup.to.volume.size (150Gi)"}},
		"FullTold": {"Also while nothing waits yet.", func(w *world) {
			w.backup.Repository = observev1alpha1.RepositoryReport{Disk: facts.DiskFull, UsedPercent: 95}
		}, "StorageHealthy", []string{"False", "StorageFull", "data-orders-db-repository-0", "spec.backup.retention"}},
		"Low": {"There is time to do something.", func(w *world) {
			w.backup.Repository = observev1alpha1.RepositoryReport{Disk: facts.DiskLow, UsedPercent: 85}
		}, "StorageHealthy", []string{"False", "StorageLow", "data-orders-db-repository-0", "raise spec.backup.to.volume.size"}},
		"Stuck": {"A class that does not grow is no remedy.", func(w *world) {
			w.stuck = "NotExpandable"
			w.edit(withBackup(`{to: {volume: {size: 200Gi, storageClassName: archive}}}`))
			w.pass()
			w.backup.Repository = observev1alpha1.RepositoryReport{Disk: facts.DiskLow, UsedPercent: 85}
		}, "StorageHealthy", []string{"False", "StorageLow", "cannot grow to 200Gi: it says why: correct it"}},
		"Unready": {"Nobody serves it.", func(w *world) {
			*w.backup = observev1alpha1.BackupReport{Unread: "no connection"}
			w.react()
			w.request.Observed[names.Repository].Map()["status"] = map[string]any{"readyReplicas": 0.0}
		}, "BackupFresh", []string{"False", "RepositoryUnready", "describe pod orders-db-repository-0"}},
		"Unread": {"It does not answer, and nobody knows why.", func(w *world) {
			*w.backup = observev1alpha1.BackupReport{Unread: "no connection"}
		}, "BackupFresh", []string{"Unknown", "BackupUnknown", "the leader cannot read the backup volume"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(toVolume))
			w.backup = wellBackedUp()
			tc.happen(w)
			if name != "Unready" {
				w.react()
			} else {
				set := w.request.Observed[names.Repository]
				status := maps.Clone(compose.Map(set.Map(), "status"))
				w.react()
				set.Map()["status"] = status
			}
			status, reason, message := condition(w.plan(), tc.condition)
			for _, want := range tc.want {
				if !strings.Contains(status+" "+reason+" "+message, want) {
					t.Errorf("%s: %s is %s, %s: %s; want %q", tc.reason, tc.condition, status, reason, message, want)
				}
			}
		})
	}
}

// TestVolumeGrows by its VolumeClaim, while its StatefulSet stays as it was made, and never shrinks.
func TestVolumeGrows(t *testing.T) {
	w := running(t, withBackup(`{to: {volume: {}}}`))
	claimed := func() string {
		return compose.Text(w.request.Observed[names.RepositoryVolumeClaim].Map(), "spec", "forProvider", "size")
	}
	if got := claimed(); got != "150Gi" {
		t.Errorf("the volume has %s, want three times that of a member", got)
	}
	before := compose.List(w.request.Observed[names.Repository].Map(), "spec", "volumeClaimTemplates")
	for _, tc := range []struct{ spec, want, problem string }{
		{`{to: {volume: {size: 300Gi}}, onDelete: Delete}`, "300Gi", ""},
		{`{to: {volume: {}}}`, "300Gi", ""},
		{`{to: {volume: {size: 200Gi}}}`, "300Gi", "spec.backup.to.volume.size"},
		{`{to: {volume: {storageClassName: other}}}`, "300Gi", "spec.backup.to.volume.storageClassName"},
		{`{to: {volume: {size: 1Mi}}}`, "300Gi", "at least 1Gi"},
	} {
		w.edit(withBackup(tc.spec))
		p := w.pass()
		if status, _, message := condition(p, "Accepted"); (status == "True") != (tc.problem == "") || !strings.Contains(message, tc.problem) {
			t.Errorf("%s: Accepted is %s: %s", tc.spec, status, message)
		}
		if got := claimed(); got != tc.want {
			t.Errorf("%s: the volume has %s, want %s", tc.spec, got, tc.want)
		}
		if diff := cmp.Diff(before, compose.List(w.request.Observed[names.Repository].Map(), "spec", "volumeClaimTemplates")); diff != "" {
			t.Errorf("%s: the claim is changed, which the API server refuses: -before, +after:\n%s", tc.spec, diff)
		}
		policy := compose.Text(w.request.Observed[names.Repository].Map(), "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if goes := policy == "Delete"; goes != strings.Contains(tc.spec, "onDelete: Delete") {
			t.Errorf("%s: the volume goes with the Database: %t", tc.spec, goes)
		}
	}
}

// TestVolumeImage: pgBackRest talks only to its own version, so that the host of the volume and those who verify have the image
// of the leader.
func TestVolumeImage(t *testing.T) {
	w := running(t, withBackup(`{verify: {}, to: {volume: {}}}`))
	w.backup = wellBackedUp()
	w.react()
	image := func(resource string, path ...string) string {
		c, _ := compose.List(w.request.Observed[resource].Map(), append(path, "spec", "template", "spec", "containers")...)[0].(map[string]any)
		return compose.Text(c, "image")
	}
	before := image(names.MemberPrefix + "a")
	w.planner = Planner(release.Release{Version: "v2"})
	w.pass()
	w.pass()
	for resource, got := range map[string]string{names.Repository: image(names.Repository), names.Verify: image(names.Verify, "spec", "jobTemplate")} {
		if got != before {
			t.Errorf("%s has image %s, and the leader %s", resource, got, before)
		}
	}
}

// TestVolumeOfSource: a copy comes with what opens the source's bucket and its volume, whichever there is, and with the label
// that lets it in.
func TestVolumeOfSource(t *testing.T) {
	w := running(t, `{engine: postgres, version: "17", replicas: 1, storage: 1Gi, from: {database: {name: other}}}`)
	member := w.request.Observed[names.MemberPrefix+"a"].Map()
	if got := facts.SecretOf(compose.List(member, "spec", "template", "spec", "volumes"), names.VolumeSourceRepository); got != "other-pg-repository" {
		t.Errorf("the volume is opened with %q", got)
	}
	if got := compose.Text(member, "spec", "template", "metadata", "labels", names.LabelCopyOf); got != "other" {
		t.Errorf("the copy is one of %q", got)
	}
}

// TestVolumeProblems: a target is one thing.
func TestVolumeProblems(t *testing.T) {
	for _, to := range []string{`{}`, `{volume: {}, connectionSecretRef: {name: own}}`} {
		p := newWorld(t, withBackup(`{to: `+to+`}`)).plan()
		if status, _, message := condition(p, "Accepted"); status != "False" || !strings.Contains(message, "spec.backup.to") {
			t.Errorf("%s: Accepted is %s: %s", to, status, message)
		}
	}
}
