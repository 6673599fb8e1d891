// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// withKey is a Database whose backups are encrypted.
func withKey(name string) string {
	return withBackup(`{verify: {}, encryption: {secretRef: {name: ` + name + `}}}`)
}

// podVolumes of a pod template below a path.
func podVolumes(o compose.Object, path ...string) []any {
	return compose.List(o.Map(), append(append([]string{"spec"}, path...), "template", "spec", "volumes")...)
}

// TestEncryption: everybody who reads or writes the bucket has the key, as a file, and knows that it is asked for.
func TestEncryption(t *testing.T) {
	w := running(t, withKey("vault"))
	w.backup = wellBackedUp()
	w.backup.Verification.Asked = true
	w.react()
	w.pass()
	want := facts.KeyRef{Secret: "vault", Key: "passphrase"}
	for name, volumes := range map[string][]any{
		"member":           podVolumes(w.request.Observed[names.MemberPrefix+"a"]),
		"backup":           podVolumes(w.request.Observed[names.Backup], "jobTemplate", "spec"),
		"verification":     podVolumes(w.request.Observed[names.Verify], "jobTemplate", "spec"),
		"verification now": podVolumes(w.request.Observed[names.VerifyNowPrefix+backup.FirstVerify]),
	} {
		if diff := cmp.Diff(want, facts.KeyIn(volumes, names.VolumeBackupKey), cmp.AllowUnexported(facts.KeyRef{})); diff != "" {
			t.Errorf("the key of a %s: -want, +got:\n%s", name, diff)
		}
	}
	if !w.memberTold().Backup.Encrypted {
		t.Error("nobody is told that backups are encrypted: without the Secret they would be plain")
	}

	// Who no longer mentions backups keeps what they need, and nobody is restarted.
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi}`)
	w.pass()
	if got := facts.KeyIn(podVolumes(w.request.Observed[names.MemberPrefix+"a"]), names.VolumeBackupKey); got != want {
		t.Errorf("without spec.backup the key is %+v, want %+v", got, want)
	}
}

// TestEncryptionFixed: a repository is encrypted from its first backup on, or never, also when the block was removed in between,
// which the schema cannot see.
func TestEncryptionFixed(t *testing.T) {
	for name, tc := range map[string]struct{ reason, before, after, want string }{
		"Added":   {"What is there is plain.", withBackup(`{}`), withKey("vault"), "remove the field"},
		"Removed": {"What is there is encrypted.", withKey("vault"), withBackup(`{}`), `key passphrase of Secret "vault"`},
		"Moved":   {"Another Secret may have the same value.", withKey("vault"), withKey("safe"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.before)
			w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi}`)
			w.pass()
			w.edit(tc.after)
			status, _, message := condition(w.plan(), "Accepted")
			if (status == "True") != (tc.want == "") || !strings.Contains(message, tc.want) {
				t.Errorf("%s: Accepted is %s: %s", tc.reason, status, message)
			}
		})
	}
}

func TestEncryptionConditions(t *testing.T) {
	depends := `without the value passphrase of Secret "vault" the backups are lost`
	for name, tc := range map[string]struct {
		reason, spec         string
		told                 func(*observev1alpha1.BackupReport)
		status, why, message string
	}{
		"Held":     {"From the first day on it is told what depends on the key.", withKey("vault"), func(*observev1alpha1.BackupReport) {}, "True", "KeyHeld", depends},
		"Unknown":  {"Also while nobody told yet.", withKey("vault"), func(b *observev1alpha1.BackupReport) { *b = observev1alpha1.BackupReport{} }, "Unknown", "BackupUnknown", depends},
		"Missing":  {"The Secret was deleted.", withKey("vault"), func(b *observev1alpha1.BackupReport) { b.Key = observev1alpha1.KeyMissing }, "False", "KeyMissing", "restore the Secret from your copy"},
		"Invalid":  {"It is too short.", withKey("vault"), func(b *observev1alpha1.BackupReport) { b.Key = observev1alpha1.KeyInvalid }, "False", "KeyInvalid", "24 to 1024"},
		"Mismatch": {"It is another one.", withKey("vault"), func(b *observev1alpha1.BackupReport) { b.Key = observev1alpha1.KeyMismatch }, "False", "KeyMismatch", "restore the key that these backups were encrypted with"},
		"Off": {
			"What the bucket has stays encrypted.", withBackup(`{enabled: false, encryption: {secretRef: {name: vault}}}`),
			func(b *observev1alpha1.BackupReport) { *b = observev1alpha1.BackupReport{} }, "False", "BackupsOff", depends,
		},
		"None": {"Without a key there is nothing to lose.", withBackup(`{}`), func(*observev1alpha1.BackupReport) {}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.spec)
			w.backup = wellBackedUp()
			tc.told(w.backup)
			w.react()
			p := w.plan()
			status, why, message := condition(p, "BackupEncrypted")
			if status != tc.status || why != tc.why || !strings.Contains(message, tc.message) {
				t.Errorf("%s: BackupEncrypted is %q %q: %s", tc.reason, status, why, message)
			}
			if status, _, message := condition(p, "Available"); status != "True" {
				t.Errorf("%s: it does not serve: %s", tc.reason, message)
			}
		})
	}
}

// TestEncryptedSource: a copy reads with the key of its source, and backs itself up with its own or with none.
func TestEncryptedSource(t *testing.T) {
	for name, from := range map[string]string{
		"Database": `{database: {name: other, encryption: {secretRef: {name: theirs, key: old}}}}`,
		"Backup":   `{backup: {connectionSecretRef: {name: old}, database: other, encryption: {secretRef: {name: theirs, key: old}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, `{engine: postgres, version: "17", replicas: 1, storage: 1Gi, backup: {}, from: `+from+`}`)
			volumes := podVolumes(w.request.Observed[names.MemberPrefix+"a"])
			if got := facts.KeyIn(volumes, names.VolumeSourceKey); got != (facts.KeyRef{Secret: "theirs", Key: "old"}) {
				t.Errorf("the source is read with the key %+v", got)
			}
			if got := facts.KeyIn(volumes, names.VolumeBackupKey); got.Encrypted() {
				t.Errorf("the copy's own backups have the key %+v, and nobody asked for one", got)
			}
			if told := w.memberTold(); !told.From.Encrypted || told.Backup.Encrypted {
				t.Errorf("members are told %+v and %+v", told.From, told.Backup)
			}
		})
	}
}
