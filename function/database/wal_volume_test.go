// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	apart     = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, walStorage: 20Gi}`
	apartMore = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, walStorage: 40Gi}`
)

// parted are the members whose pods have a volume for the write-ahead log, by letter.
func (w *world) parted() string {
	var out strings.Builder
	for _, letter := range names.Letters {
		if o := w.request.Observed[names.MemberPrefix+letter]; o != nil &&
			compose.Text(facts.Entry(compose.List(o.Map(), "spec", "template", "spec", "volumes"), names.VolumeWAL), "persistentVolumeClaim", "claimName") == "wal-orders-db-"+letter+"-0" {
			out.WriteString(letter)
		}
	}
	return out.String()
}

// logSizes are how much write-ahead log members keep, as they are told.
func (w *world) logSizes() map[string]string {
	out := map[string]string{}
	text := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
	for _, name := range []string{"max_wal_size", "wal_keep_size", "max_slot_wal_keep_size"} {
		_, after, _ := strings.Cut(text, `"`+name+`": "`)
		if after == "" {
			_, after, _ = strings.Cut(text, `"`+name+`":"`)
		}
		out[name], _, _ = strings.Cut(after, `"`)
	}
	return out
}

// TestWALVolume of a Database that is made with it.
func TestWALVolume(t *testing.T) {
	w := running(t, apart)
	if got := w.parted(); got != "abc" {
		t.Errorf("members with a volume for the log: want abc, got %s", got)
	}
	wal := compose.Map(w.request.Observed[names.VolumeClaim].Map(), "spec", "forProvider", "wal")
	if diff := cmp.Diff(map[string]any{"size": "20Gi"}, wal); diff != "" {
		t.Errorf("the VolumeClaim: -want, +got:\n%s", diff)
	}
	w.pass()
	if diff := cmp.Diff(map[string]string{"max_wal_size": "5120MB", "wal_keep_size": "1024MB", "max_slot_wal_keep_size": "10240MB"}, w.logSizes()); diff != "" {
		t.Errorf("what is kept follows the volume of the log: -want, +got:\n%s", diff)
	}
	file := compose.Text(w.request.Observed[names.Config].Map(), "data", "patroni-wal.yaml")
	if strings.Count(file, "waldir: /wal/pg_wal") != 2 {
		t.Errorf("new data and copies do not have the log on the volume:\n%s", file)
	}
	if st := told(t, w.plan()).Storage; st.WALSize != "20Gi" || st.Size != "50Gi" || len(st.Volumes) != 3 || st.Volumes[0].WALVolume == nil {
		t.Errorf("status.storage: %+v", st)
	}
}

// TestWALVolumeIsAdded to a Database that runs: as a change with a plan, when the claims are there, one member after the other, the leader
// last.
func TestWALVolumeIsAdded(t *testing.T) {
	w := running(t, basic)
	before := w.logSizes()
	w.noWAL = true
	w.edit(apart)
	for range 3 {
		w.pass()
	}
	p := w.plan()
	change := told(t, p).Change
	want := []v1alpha1.ChangeEffect{
		{Field: "spec.walStorage", Effect: v1alpha1.EffectRestart, Cause: v1alpha1.ChangedBySpec},
	}
	if change == nil || !strings.HasPrefix(change.Hash, "c") {
		t.Fatalf("no change is told: %+v", change)
	}
	if diff := cmp.Diff(want, change.Effects); diff != "" {
		t.Errorf("effects: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"orders-db-b", "orders-db-c", "orders-db-a"}, change.Order); diff != "" {
		t.Errorf("order: -want, +got:\n%s", diff)
	}
	if _, reason, message := condition(p, "Updated"); reason != "VolumePending" || !strings.Contains(message, `"wal-orders-db-b-0"`) || w.parted() != "" {
		t.Errorf("no member stops before its volume is there: %s: %s; changed: %q", reason, message, w.parted())
	}
	w.noWAL = false
	w.react()
	var steps []string
	for range 12 {
		w.pass()
		if got := w.parted(); len(steps) == 0 || steps[len(steps)-1] != got {
			steps = append(steps, got)
		}
		if diff := cmp.Diff(before, w.logSizes()); diff != "" && w.parted() != "abc" {
			t.Errorf("while %q have the volume the log has to fit both places: -want, +got:\n%s", w.parted(), diff)
		}
	}
	if diff := cmp.Diff([]string{"b", "bc", "abc"}, steps); diff != "" {
		t.Errorf("members that have the volume, step by step: -want, +got:\n%s", diff)
	}
	if got := w.logSizes()["max_wal_size"]; got != "5120MB" {
		t.Errorf("max_wal_size follows the volume in the end: want 5120MB, got %s", got)
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("the change does not end: %s: %s", reason, message)
	}
	for letter, o := range map[string]compose.Object{"a": w.request.Observed["member-a"], "c": w.request.Observed["member-c"]} {
		if n := len(compose.List(o.Map(), "spec", "volumeClaimTemplates")); n != 1 {
			t.Errorf("claims of member %s, which cannot change: want 1, got %d", letter, n)
		}
	}
}

// TestWALVolumeThatCannotGrow is there: a member that needs it gets it with the size it has.
func TestWALVolumeThatCannotGrow(t *testing.T) {
	w := running(t, basic)
	w.stuck = storagev1alpha1.VolumeFailed
	for _, letter := range []string{"a", "b", "c"} {
		w.sizes["wal-orders-db-"+letter+"-0"] = "10Gi"
	}
	w.edit(apart)
	for range 12 {
		w.pass()
	}
	if got := w.parted(); got != "abc" {
		t.Errorf("members with a volume for the log: want abc, got %q", got)
	}
}

// TestWALBacklog: what may wait for the archive has room where the log is, also while members get a volume for it.
func TestWALBacklog(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, bound         string
		before, moving, after int64
	}{
		"Default": {"A part of the volume that has the log.", "", 10 << 30, 10 << 30, 25 << 30},
		"Bound":   {"A bound that is for the new volume counts when the log is there.", ", maxArchiveBacklog: 45Gi", 10 << 30, 25 << 30, 45 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(`{schedule: "0 6 * * *"}`))
			w.backup = wellBackedUp()
			w.react()
			w.pass()
			told := func(want int64, when string) {
				t.Helper()
				if got := w.memberTold().Backup.Queue; got != want {
					t.Errorf("%s: %s: want %d bytes, got %d", tc.reason, when, want, got)
				}
			}
			told(tc.before, "before")
			w.noWAL = true
			w.edit(strings.Replace(withBackup(`{schedule: "0 6 * * *"`+tc.bound+`}`), "storage: 50Gi", "storage: 50Gi, walStorage: 100Gi", 1))
			for range 3 {
				w.pass()
			}
			told(tc.moving, "no member has the volume")
			w.noWAL = false
			w.react()
			for range 12 {
				w.pass()
			}
			told(tc.after, "all members have it")
		})
	}
}

func TestWALStorage(t *testing.T) {
	low := full("Low", 90, observev1alpha1.FillSlot, "19Gi")
	cases := map[string]struct {
		reason       string
		before, spec string
		stuck        string
		data, wal    filled
		passes       int
		status, told string
		words        []string
		not          string
	}{
		"Settled": {reason: "Both have room.", spec: apart, passes: 2, status: "True", told: "StorageReady"},
		"Low": {
			reason: "The volume of the log is told, not the other, with what keeps the log and the field that helps.", spec: apart, wal: low, passes: 2,
			status: "False", told: "StorageLow",
			words: []string{"the volume for the write-ahead log of orders-db-a (20Gi)", `"cdc"`, "raising spec.walStorage (20Gi)"}, not: "spec.storage ",
		},
		"Full": {
			reason: "So is one that is full.", spec: apart, wal: full("Full", 100, observev1alpha1.FillArchive, "19Gi"), passes: 2,
			status: "False", told: "StorageFull", words: []string{"the volume for the write-ahead log of orders-db-a", "ArchiveHealthy"}, not: "data fills it",
		},
		"DataFull": {
			reason: "Data fills its own volume.", spec: apart, data: full("Full", 100, observev1alpha1.FillData, "49Gi"), passes: 2,
			status: "False", told: "StorageFull", words: []string{"the volume of orders-db-a (50Gi)", "data fills it", "Raise spec.storage (50Gi)"}, not: "write-ahead",
		},
		"Held": {
			reason: "No log grows a volume by itself.", spec: strings.Replace(growing, "storageGrowth", "walStorage: 20Gi, storageGrowth", 1), wal: low, passes: 3,
			status: "False", told: "GrowthHeld", words: []string{"does not grow volumes for the write-ahead log by itself"},
		},
		"Raised": {
			reason: "A volume that grows has room.", spec: apartMore, passes: 1, status: "True", told: "Growing",
			words: []string{"for the write-ahead log of orders-db-a from 20Gi to 40Gi"},
		},
		"Grown": {reason: "And is there in the end.", spec: apartMore, passes: 3, status: "True", told: "StorageReady"},
		"Failed": {
			reason: "The size that cannot be given is the log's.", spec: apartMore, stuck: storagev1alpha1.VolumeFailed, passes: 3, status: "False", told: "GrowthFailed",
			words: []string{"40Gi for the write-ahead log", "orders-db-a has 20Gi for its write-ahead log: it says why"}, not: "50Gi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, apart)
			w.stuck = tc.stuck
			w.filledWAL = map[string]filled{}
			if tc.wal.disk != "" {
				w.filledWAL["orders-db-a"] = tc.wal
			}
			if tc.data.disk != "" {
				w.filled["orders-db-a"] = tc.data
			}
			w.react()
			w.edit(tc.spec)
			before := w.revisions()
			for range tc.passes {
				w.pass()
			}
			status, reason, message := condition(w.plan(), "StorageHealthy")
			if status != tc.status || reason != tc.told {
				t.Errorf("\n%s\nStorageHealthy: want %s %s, got %s %s: %s", tc.reason, tc.status, tc.told, status, reason, message)
			}
			for _, word := range tc.words {
				if !strings.Contains(message, word) {
					t.Errorf("\n%s\nwant %q in %q", tc.reason, word, message)
				}
			}
			if tc.not != "" && strings.Contains(message, tc.not) {
				t.Errorf("\n%s\nwant no %q in %q", tc.reason, tc.not, message)
			}
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("\n%s\nno member is changed for its storage: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWALVolumeRefused: what cannot be is told with field, value and remedy, and changes nothing.
func TestWALVolumeRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, before, spec string
		told                 string
		words                []string
	}{
		"Removed": {
			"The data needs its log.", apart, basic, "InvalidSpec", []string{"spec.walStorage", "stays there", "spec.from.database"},
		},
		"MySQL": {
			"MySQL keeps its logs beside the data.", group, strings.Replace(group, "storage: 50Gi", "storage: 50Gi, walStorage: 20Gi", 1), "UnsupportedByEngine",
			[]string{"spec.walStorage", "20Gi", "raise spec.storage"},
		},
		"Backlog": {
			"What waits for the archive is on the volume of the log.", apart,
			strings.Replace(apart, "walStorage", `backup: {schedule: "0 1 * * *", maxArchiveBacklog: 15Gi}, walStorage`, 1), "InvalidSpec",
			[]string{"spec.backup.maxArchiveBacklog", "15Gi", "half of spec.walStorage"},
		},
		"Parameter": {
			"So is what the server keeps.", apart, strings.Replace(apart, "walStorage", `config: {wal_keep_size: 12GB}, walStorage`, 1), "InvalidSpec",
			[]string{"spec.config.wal_keep_size", "12GB", "20Gi"},
		},
		"Checkpoints": {
			"So is what is written between two checkpoints.", apart, strings.Replace(apart, "walStorage", `config: {max_wal_size: 30GB}, walStorage`, 1), "InvalidSpec",
			[]string{"spec.config.max_wal_size", "30GB", "20Gi", "lower it"},
		},
		"Recycled": {
			"Files up to that size are kept to be written again, and never removed.", apart,
			strings.Replace(apart, "walStorage", `config: {min_wal_size: 30GB}, walStorage`, 1), "InvalidSpec",
			[]string{"spec.config.min_wal_size", "30GB", "20Gi", "lower it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.before)
			w.edit(tc.spec)
			before := w.revisions()
			p := w.pass()
			_, reason, message := condition(p, "Accepted")
			if reason != tc.told {
				t.Errorf("\n%s\nAccepted: want %s, got %s: %s", tc.reason, tc.told, reason, message)
			}
			for _, word := range tc.words {
				if !strings.Contains(message, word) {
					t.Errorf("\n%s\nwant %q in %q", tc.reason, word, message)
				}
			}
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("\n%s\nmembers: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWALAlerts: a volume for the write-ahead log has alerts of its own.
func TestWALAlerts(t *testing.T) {
	for spec, want := range map[string]int{basic: 0, apart: 2} {
		w := running(t, spec)
		raw, err := json.Marshal(w.request.Observed[names.Rules].Map())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(raw), `"alert":"DatabaseWALVolume`); got != want {
			t.Errorf("%s: want %d alerts on volumes for the log, got %d", spec, want, got)
		}
		if got := strings.Contains(string(raw), "wal-orders-db-[a-j]-0"); got != (want > 0) {
			t.Errorf("%s: the volumes for the log are watched: %t", spec, got)
		}
	}
}
