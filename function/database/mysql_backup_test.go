// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// groupTold is what the members of a generation of a group are told.
func (w *world) groupTold(generation int) mysqlmember.Config {
	w.t.Helper()
	config := (&names.Names{Generation: generation}).In(names.Config)
	c, err := mysqlmember.ParseConfig([]byte(compose.Text(w.request.Observed[config].Map(), "data", mysqlmember.FileConfig)))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// purges reports whether the servers of a group remove binary logs by themselves.
func (w *world) purges() bool {
	w.t.Helper()
	d, err := mysqlmember.ParseDynamic(compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig))
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Parameters["binlog_expire_logs_auto_purge"] == "ON"
}

// TestGroupBackup: backups of a group are the same objects, with what its engine needs: a volume for the copy, the port where members
// replicate, and memory for a server.
func TestGroupBackup(t *testing.T) {
	w := running(t, with(group, `databases: [{name: orders}], backup: {schedule: "0 */6 * * *", retention: 14d, restorePoint: v1, `+
		`encryption: {secretRef: {name: key}}, verify: {maxRestoreTime: 45m, assertions: [{database: orders, sql: "SELECT TRUE"}]}}`))
	w.backup = wellBackedUp()
	w.backup.Verification.Asked = true
	w.react()
	w.pass()
	hosts := []string{"orders-db-a-0.orders-db-pods.shop.svc", "orders-db-b-0.orders-db-pods.shop.svc", "orders-db-c-0.orders-db-pods.shop.svc"}
	want := &mysqlmember.Backup{
		Enabled: true, Stanza: "orders-db-3f2a9c1b-9-7", Path: "/shop/orders-db", Queue: 10 << 30, UntilLow: true, RetentionDays: 14, Members: hosts,
		RestorePoint: "v1", Encrypted: true,
		Verify: &mysqlmember.Verify{MaxRestoreSeconds: 2700, Assertions: []mysqlmember.Assertion{{Database: "orders", SQL: "SELECT TRUE"}}},
	}
	if diff := cmp.Diff(want, w.groupTold(1).Backup); diff != "" {
		t.Errorf("what members are told of backups: -want, +got:\n%s", diff)
	}
	if w.purges() {
		t.Error("servers remove binary logs that may not be in the archive")
	}
	w.edit(w.specWith(`backup: {now: soon}`))
	p := w.plan()
	for resource, wants := range map[string][]string{
		names.BackupBucket:      {`"name":"orders-db-backup"`, `"writeConnectionSecretToRef":{"name":"orders-db-pg-backup-bucket"}`},
		names.BackupCertificate: {`"commonName":"capstan-backup"`, `"usages":["digital signature","client auth"]`},
		names.NetworkPolicy: {
			`{"ports":[{"protocol":"TCP","port":33062}],"from":[{"podSelector":{"matchLabels":{"capstan.dev/backup-of":"orders-db"}}}]}`,
		},
		names.Backup: {
			`"command":["/usr/local/bin/capstan-member","backup"]`, `"image":"ghcr.io/capstan-dev/mysql:v1"`, `"memory":"1Gi"`, `"name":"data","mountPath":"/data"`,
			`"storage":"50Gi"`, `"fsGroupChangePolicy":"OnRootMismatch"`, `"mountPath":"/etc/capstan/backup"`, `"mountPath":"/etc/capstan/backup-key"`,
			`"mountPath":"/etc/capstan/tls/members"`, `"mountPath":"/etc/capstan/config"`, `"app.kubernetes.io/name":"mysql-backup"`,
		},
		names.BackupNowPrefix + backup.NowName("soon"): {`"name":"data","mountPath":"/data"`},
		names.Verify: {
			`"command":["/usr/local/bin/capstan-member","verify"]`, `"memory":"1536Mi"`, `"name":"data","mountPath":"/data"`, `"storage":"50Gi"`,
		},
		names.MemberPrefix + "a": {`"mountPath":"/etc/capstan/backup"`, `"mountPath":"/etc/capstan/backup-key"`, `"secretName":"orders-db-pg-backup-bucket"`},
	} {
		if p.Objects[resource].Object == nil {
			t.Errorf("there is no %s among %v", resource, compose.SortedKeys(p.Objects))
			continue
		}
		text := encodedObject(t, p, resource)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", resource, want, text)
			}
		}
	}
	for _, absent := range []string{names.Repository, names.RepositoryService, names.RepositoryVolumeClaim} {
		if p.Objects[absent].Object != nil {
			t.Errorf("a bucket needs no %s", absent)
		}
	}
}

// specWith some fields merged into what the Database has.
func (w *world) specWith(fields string) string {
	w.t.Helper()
	raw, err := json.Marshal(merged(compose.Map(w.request.Composite.Map(), "spec"), parse(w.t, "{"+fields+"}")))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// merged values, those of b where both have one.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for key, value := range b {
		was, isMap := out[key].(map[string]any)
		is, both := value.(map[string]any)
		if isMap && both {
			value = merged(was, is)
		}
		out[key] = value
	}
	return out
}

// TestGroupBackupTakesTime: data is copied first, and then sent.
func TestGroupBackupTakesTime(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec string
		want         time.Duration
	}{
		"Small":  {"Six hours are enough for both.", with(group, `backup: {}`), 6 * time.Hour},
		"Large":  {"Twice as long as with an engine that sends what members have.", strings.Replace(with(group, `backup: {}`), "50Gi", "1Ti", 1), 30 * time.Hour},
		"Direct": {"An engine that sends what members have.", strings.Replace(withBackup(`{}`), "50Gi", "1Ti", 1), 15 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := gather(newWorld(t, tc.spec).request, release.Release{Version: "v1"})
			if err != nil {
				t.Fatal(err)
			}
			if got := backup.Deadline(s); got != tc.want {
				t.Errorf("\n%s\na backup may take %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestGroupBackupRestarts: pods have to get the Secret of the bucket once, and nothing else of backups restarts a member.
func TestGroupBackupRestarts(t *testing.T) {
	w := running(t, group)
	before := w.revisions()
	if !w.purges() {
		t.Error("without an archive servers have to remove binary logs")
	}
	w.edit(with(group, `backup: {}`))
	change := told(t, w.plan()).Change
	if change == nil || !slices.ContainsFunc(change.Effects, func(e v1alpha1.ChangeEffect) bool { return e.Field == "spec.backup" && e.Effect == "Restart" }) {
		t.Errorf("the restart for the Secret of the bucket is not announced: %+v", change)
	}
	order := []string{}
	for range 14 {
		for letter, revision := range w.revisions() {
			if revision != before[letter] {
				before[letter] = revision
				order = append(order, letter)
			}
		}
		w.pass()
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
		t.Errorf("order of restarts: -want, +got:\n%s", diff)
	}
	if w.purges() {
		t.Error("servers remove binary logs that may not be in the archive")
	}
	for _, tc := range []struct {
		spec   string
		purges bool
	}{
		{`backup: {enabled: false}`, true},
		{`backup: {schedule: "0 1 * * *", retention: 7d, verify: {}, restorePoint: v1, now: a, maxArchiveBacklog: 1Gi}`, false},
	} {
		w.edit(with(group, tc.spec))
		for range 4 {
			w.pass()
		}
		if diff := cmp.Diff(before, w.revisions()); diff != "" {
			t.Errorf("%s restarts members: %s", tc.spec, diff)
		}
		if got := w.purges(); got != tc.purges {
			t.Errorf("%s: servers remove binary logs by themselves: %t", tc.spec, got)
		}
		if got := w.groupTold(1).Backup; got == nil || got.Enabled == tc.purges {
			t.Errorf("%s: members are told %+v", tc.spec, got)
		}
	}
}

// TestGroupOnPlatformOfVolumes: the settings of a platform without buckets choose a volume.
func TestGroupOnPlatformOfVolumes(t *testing.T) {
	for name, tc := range map[string]struct{ reason, backup, want string }{
		"Default": {"The settings choose.", `{}`, "orders-db-pg-repository"},
		"Own":     {"The spec chooses.", `{to: {connectionSecretRef: {name: mine}}}`, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(group, "backup: "+tc.backup))
			w.request.Settings.Database.Backup.To = inputv1alpha1.BackupToVolume
			for range 6 {
				w.pass()
			}
			if got := w.bucketSecrets("a"); got != tc.want {
				t.Errorf("\n%s\nmembers open it with Secret %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestGroupVolume: a volume of backups of a group is the same objects. Its host serves objects only: pods that take backups read members and write
// to it, and neither its certificate nor its pod opens anything at members.
func TestGroupVolume(t *testing.T) {
	w := running(t, with(group, `databases: [{name: orders}], backup: {encryption: {secretRef: {name: key}}, verify: {}, to: {volume: {size: 150Gi, storageClassName: archive}}}`))
	w.backup = wellBackedUp()
	w.backup.Verification.Asked = true
	w.backup.Repository = observev1alpha1.RepositoryReport{Disk: facts.DiskFull, UsedPercent: 95}
	w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveFailing, "the volume is full"
	w.react()
	p := w.plan()
	if got := w.groupTold(1).Backup.Repository; got != "orders-db-repository.shop.svc" {
		t.Errorf("members are told of the repository %q", got)
	}
	if w.has(repositoryObjects...) != hasAll || w.has(names.BackupBucket) != hasNone {
		t.Errorf("there are %v", compose.SortedKeys(w.request.Observed))
	}
	const readers = `{"podSelector":{"matchLabels":{"capstan.dev/verification-of":"orders-db"}}},{"podSelector":{"matchLabels":{"capstan.dev/copy-of":"orders-db"}}},` +
		`{"podSelector":{"matchLabels":{"capstan.dev/backup-of":"orders-db"}}}`
	for resource, wants := range map[string][]string{
		names.Repository: {
			`"command":["/usr/local/bin/capstan-member","repository"]`, `"image":"ghcr.io/capstan-dev/mysql:v1"`, `"containerPort":8433`, `"mountPath":"/data"`,
			`"mountPath":"/etc/capstan/tls/members"`, `"storageClassName":"archive"`,
		},
		names.RepositoryService:     {`"ports":[{"name":"backups","protocol":"TCP","port":8433,"targetPort":"backups"}]`},
		names.RepositoryCertificate: {`"commonName":"capstan-repository-host"`, `"orders-db-repository.shop.svc"`, `"server auth"`},
		names.RepositoryClientCertificate: {
			`"commonName":"capstan-repository"`, `"usages":["digital signature","client auth"]`, `"secretName":"orders-db-pg-repository"`,
		},
		names.RepositoryNetworkPolicy: {`"port":8433`, readers, `"policyTypes":["Ingress","Egress"]`},
		names.NetworkPolicy: {
			`{"ports":[{"protocol":"TCP","port":33062}],"from":[{"podSelector":{"matchLabels":{"capstan.dev/backup-of":"orders-db"}}}]}`,
		},
		names.Backup: {
			`"name":"backup","secret":{"secretName":"orders-db-pg-repository","defaultMode":288}`, `"mountPath":"/etc/capstan/backup"`, `"mountPath":"/etc/capstan/backup-key"`,
			`"name":"data","mountPath":"/data"`,
		},
		names.Verify:             {`"mountPath":"/etc/capstan/backup"`, `"mountPath":"/etc/capstan/backup-key"`},
		names.VerifyPolicy:       {`"ports":[{"protocol":"TCP","port":8433}],"to":[{"podSelector":{"matchLabels":{"capstan.dev/repository-of":"orders-db"}}}]`},
		names.MemberPrefix + "a": {`"secretName":"orders-db-pg-repository"`},
	} {
		text := encodedObject(t, p, resource)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", resource, want, text)
			}
		}
	}
	for resource, absent := range map[string][]string{
		names.Repository:              {"33062", "8432", "backup-key"},
		names.RepositoryService:       {"33062", "8432"},
		names.RepositoryNetworkPolicy: {"33062", "8432", `"egress":[{`},
	} {
		text := encodedObject(t, p, resource)
		for _, one := range absent {
			if strings.Contains(text, one) {
				t.Errorf("%s has %s: %s", resource, one, text)
			}
		}
	}
	if status, reason, message := condition(p, "ArchiveHealthy"); status != "False" || reason != "RepositoryFull" || !strings.Contains(message, "spec.backup.to.volume.size (150Gi)") {
		t.Errorf("ArchiveHealthy is %s, %s: %s", status, reason, message)
	}
}

// TestGroupVolumeMoved: the spec moves backups from a bucket to a volume and back. Members restart once each time, and what there is stays.
func TestGroupVolumeMoved(t *testing.T) {
	w := running(t, with(group, `backup: {}`))
	w.backup = wellBackedUp()
	w.edit(with(group, `backup: {to: {volume: {}}}`))
	for range 12 {
		w.pass()
	}
	if got := w.bucketSecrets("a"); got != "orders-db-pg-repository" || w.has(names.BackupBucket) != hasAll {
		t.Errorf("members open %q; of the bucket there is %s", got, w.has(names.BackupBucket))
	}
	w.edit(with(group, `backup: {to: {connectionSecretRef: {name: own}}}`))
	w.pass()
	if w.groupTold(1).Backup.Repository == "" {
		t.Error("members that have the volume only do not know where it is")
	}
	for range 12 {
		w.pass()
	}
	if got := w.bucketSecrets("a"); got != "own" || w.groupTold(1).Backup.Repository != "" || w.has(repositoryObjects...) != hasAll {
		t.Errorf("members open %q, and are told of %q; of the volume there is %s", got, w.groupTold(1).Backup.Repository, w.has(repositoryObjects...))
	}
}

// TestGroupFrom: another Database begins with the backups of a group.
func TestGroupFrom(t *testing.T) {
	const served = "other-repository.shop.svc"
	at := time.Date(2026, 11, 20, 8, 59, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, from, secret string
		want                 mysqlmember.Source
		// volume is the Secret of the other Database's volume, and copyOf the label that its host lets in.
		volume, copyOf string
	}{
		"Latest": {
			"A copy of the latest there is, in a bucket or on a volume.", `{database: {name: other}}`, "other-pg-backup-bucket",
			mysqlmember.Source{Path: "/shop/other", Either: served},
			"other-pg-repository", "other",
		},
		"Moment": {
			"A copy of a moment.", `{database: {name: other, at: "2026-11-20T09:59:00+01:00"}}`, "other-pg-backup-bucket",
			mysqlmember.Source{Path: "/shop/other", Either: served, At: &at},
			"other-pg-repository", "other",
		},
		"Point": {
			"A copy of a name, from encrypted backups.", `{database: {name: other, restorePoint: v1, encryption: {secretRef: {name: key}}}}`, "other-pg-backup-bucket",
			mysqlmember.Source{Path: "/shop/other", Either: served, RestorePoint: "v1", Encrypted: true},
			"other-pg-repository", "other",
		},
		"Backup": {
			"A Database that is gone.", `{backup: {connectionSecretRef: {name: old}, database: other, namespace: gone, stanza: other-1-9-7}}`, "old",
			mysqlmember.Source{Path: "/gone/other", Stanza: "other-1-9-7"},
			"", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, with(groupOf1, "from: "+tc.from))
			if diff := cmp.Diff(&tc.want, w.groupTold(1).From); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			template := compose.Map(w.request.Observed[names.MemberPrefix+"a"].Map(), "spec", "template")
			volumes := compose.List(template, "spec", "volumes")
			if got := facts.SecretOf(volumes, names.VolumeSource); got != tc.secret {
				t.Errorf("\n%s\nthe bucket is opened with %q, want %q", tc.reason, got, tc.secret)
			}
			if got := facts.SecretOf(volumes, names.VolumeSourceRepository); got != tc.volume {
				t.Errorf("\n%s\nthe volume is opened with %q, want %q", tc.reason, got, tc.volume)
			}
			if got := compose.Text(template, "metadata", "labels", names.LabelCopyOf); got != tc.copyOf {
				t.Errorf("\n%s\nthe host of the volume takes it for a copy of %q, want %q", tc.reason, got, tc.copyOf)
			}
		})
	}
}

// TestGroupRestore: a group is restored in place beside the one that serves, which is stopped before clients are switched, and kept.
func TestGroupRestore(t *testing.T) {
	long := "a-name-of-forty-letters-for-a-database-0"
	for _, name := range []string{"orders-db", long} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(group, `backup: {}`))
			w.request.Composite.Map()["metadata"].(map[string]any)["name"] = name
			for range 6 {
				w.pass()
			}
			w.backup = wellBackedUp()
			w.react()
			stanza := name + "-3f2a9c1b-9-7"
			if got := w.groupTold(1).Backup.Stanza; got != stanza {
				t.Errorf("the stanza is %q, want %q", got, stanza)
			}
			w.edit(with(group, `backup: {}, restore: {id: r1, at: "2026-11-20T10:00:00Z"}`))
			w.until(func() bool { return len(w.replicas(2)) == 3 })
			at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			begun := w.groupTold(2)
			if diff := cmp.Diff(&mysqlmember.Source{Path: "/shop/" + name, Stanza: stanza, At: &at}, begun.From); diff != "" {
				t.Errorf("it begins with the backups of the one before: %s", diff)
			}
			if want := name + "-3f2a9c1b-g2-9-7"; begun.Generation != 2 || begun.Backup.Stanza != want {
				t.Errorf("it is generation %d and archives to %q, want %q", begun.Generation, begun.Backup.Stanza, want)
			}
			if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "c": 1}, w.replicas(1)); diff != "" {
				t.Errorf("while the new one comes up the old one serves: %s", diff)
			}
			w.short(t)
			made := w.revisionsOf(2)
			leads := func(base string) func() bool {
				return func() bool {
					return compose.Text(w.request.Observed[names.ReadWrite].Map(), "spec", "selector", observev1alpha1.LabelDatabase) == base
				}
			}
			w.until(leads(name + ".g2"))
			if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(1)); diff != "" {
				t.Errorf("clients are switched before the old one is stopped: %s", diff)
			}
			for range 4 {
				w.pass()
			}
			if got := w.groupTold(2).From; got != nil {
				t.Errorf("if its volumes were lost, it would begin with that moment again: %+v", got)
			}
			if diff := cmp.Diff(made, w.revisionsOf(2)); diff != "" {
				t.Errorf("members restart when clients are switched: %s", diff)
			}
			if w.purges() {
				t.Error("servers remove binary logs that may not be in the archive")
			}
			w.edit(with(group, `backup: {}, restore: {undo: r1}`))
			w.until(func() bool { return fmt.Sprint(w.replicas(1)) != fmt.Sprint(map[string]int64{"a": 0, "b": 0, "c": 0}) })
			if diff := cmp.Diff(map[string]int64{"a": 1, "b": 0, "c": 0}, w.replicas(1)); diff != "" {
				t.Errorf("the last leader begins alone, because the others left before it stopped: %s", diff)
			}
			w.until(leads(name))
			if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(2)); diff != "" {
				t.Errorf("clients are switched back before the other one is stopped: %s", diff)
			}
			if status, reason, message := condition(w.pass(), "Restored"); status != "True" || reason != "RestoreUndone" {
				t.Errorf("Restored is %s %s: %s", status, reason, message)
			}
		})
	}
}

// short names and labels, as Kubernetes demands.
func (w *world) short(t *testing.T) {
	t.Helper()
	const most = 63
	for resource, o := range w.request.Observed {
		for key, value := range compose.Map(o.Map(), "metadata", "labels") {
			if text, _ := value.(string); len(text) > most {
				t.Errorf("label %s of %s is too long: %q", key, resource, text)
			}
		}
		for key, value := range compose.Map(o.Map(), "spec", "template", "metadata", "labels") {
			if text, _ := value.(string); len(text) > most {
				t.Errorf("label %s of the pod of %s is too long: %q", key, resource, text)
			}
		}
		// A pod has an ordinal and a label with the name of its StatefulSet and a hash.
		if name := compose.Text(o.Map(), "metadata", "name"); compose.TextOf(o, "kind") == names.KindStatefulSet && len(name)+len("-0123456789") > most {
			t.Errorf("the name of %s is too long: %q", resource, name)
		}
	}
}
