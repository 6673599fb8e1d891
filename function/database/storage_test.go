// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	raised  = `{engine: postgres, version: "17", replicas: 3, storage: 80Gi}`
	growing = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, storageGrowth: {max: 70Gi}}`
)

// full volume of a member, of which this much is used, and by what.
func full(disk string, percent int32, fill, of string) filled {
	return filled{disk: disk, VolumeReport: observev1alpha1.VolumeReport{UsedPercent: percent, FileSystem: of, Fill: fill, Slot: map[string]string{observev1alpha1.FillSlot: "cdc"}[fill]}}
}

// diverging volume, which also holds data of a former leader.
func diverging(f filled) filled {
	f.Diverged = "2026-11-20T06:00:00Z"
	return f
}

// TestDivergedIsReported in the status, as long as a member reports it.
func TestDivergedIsReported(t *testing.T) {
	w := running(t, basic)
	w.filled["orders-db-b"] = diverging(full("Ok", 40, "", "49Gi"))
	w.react()
	w.pass()
	for _, v := range told(t, w.plan()).Storage.Volumes {
		if is := v.Diverged != nil && v.Diverged.UTC().Equal(time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC)); is != (v.Member == "orders-db-b") {
			t.Errorf("%s: diverged is %v", v.Member, v.Diverged)
		}
	}
}

func TestStorage(t *testing.T) {
	data := full("Low", 90, observev1alpha1.FillData, "49Gi")
	cases := map[string]struct {
		reason string
		spec   string
		stuck  string
		filled filled
		passes int

		// want is the size that the VolumeClaim is asked for, and what is told.
		want, status, told string
		words              []string
	}{
		"Settled": {
			reason: "Nothing is to be done.",
			spec:   basic, passes: 2, want: "50Gi", status: "True", told: "StorageReady",
		},
		"Raised": {
			reason: "Volumes are on their way, and nothing is wrong.",
			spec:   raised, passes: 1, want: "80Gi", status: "True", told: "Growing", words: []string{"orders-db-a from 50Gi to 80Gi", "orders-db-c"},
		},
		"Grown": {
			reason: "Volumes are there.",
			spec:   raised, passes: 3, want: "80Gi", status: "True", told: "StorageReady",
		},
		"NotExpandable": {
			reason: "The class does not let volumes grow, which is told with the remedy.",
			spec:   raised, stuck: storagev1alpha1.VolumeNotExpandable, passes: 3, want: "80Gi", status: "False", told: "GrowthUnsupported",
			words: []string{"80Gi", "orders-db-a has 50Gi", "it says why"},
		},
		"Failed": {
			reason: "What the storage says is passed on.",
			spec:   raised, stuck: storagev1alpha1.VolumeFailed, passes: 3, want: "80Gi", status: "False", told: "GrowthFailed", words: []string{"it says why"},
		},
		"Full": {
			reason: "A volume that is full is told with what fills it and the remedy.",
			spec:   basic, filled: full("Full", 100, observev1alpha1.FillData, "49Gi"), passes: 2, want: "50Gi", status: "False", told: "StorageFull",
			words: []string{"orders-db-a (50Gi)", "data fills it", "Raise spec.storage (50Gi)"},
		},
		"FullAndGrowing": {
			reason: "A volume that is full and grows says both.",
			spec:   raised, filled: full("Full", 100, observev1alpha1.FillData, "49Gi"), passes: 1, want: "80Gi", status: "False", told: "StorageFull",
			words: []string{"They are growing", "orders-db-a from 50Gi to 80Gi"},
		},
		"FullBySlot": {
			reason: "A slot that holds the log back is named, with what to do.",
			spec:   basic, filled: full("Full", 95, observev1alpha1.FillSlot, "49Gi"), passes: 2, want: "50Gi", status: "False", told: "StorageFull",
			words: []string{`"cdc"`, "pg_drop_replication_slot"},
		},
		"GrowsByItself": {
			reason: "Data fills a volume, so that all grow by a step, to whole GiB.",
			spec:   growing, filled: data, passes: 1, want: "60Gi", status: "False", told: "StorageLow", words: []string{"They are growing"},
		},
		"Diverged": {
			reason: "What fills it is kept for a person, and goes before space is short.",
			spec:   growing, filled: diverging(full("Low", 90, observev1alpha1.FillData, "49Gi")), passes: 1, want: "50Gi", status: "False", told: "StorageLow",
		},
		"OneStepOnly": {
			reason: "What was measured before a step does not bring about another.",
			spec:   growing, filled: data, passes: 6, want: "60Gi", status: "False", told: "StorageLow",
		},
		"AsFarAsTheBound": {
			reason: "The second step ends at the bound.",
			spec:   growing, filled: full("Low", 90, observev1alpha1.FillData, "69Gi"), passes: 6, want: "70Gi", status: "False", told: "GrowthBound",
			words: []string{"spec.storageGrowth.max (70Gi)"},
		},
		"SlotIsNotFed": {
			reason: "Write-ahead log that a dead slot holds back does not let volumes grow.",
			spec:   growing, filled: full("Low", 90, observev1alpha1.FillSlot, "49Gi"), passes: 3, want: "50Gi", status: "False", told: "GrowthHeld",
			words: []string{`"cdc"`, "does not grow them for this cause"},
		},
		"ArchiveIsNotFed": {
			reason: "Neither does one that is not archived.",
			spec:   growing, filled: full("Low", 90, observev1alpha1.FillArchive, "49Gi"), passes: 3, want: "50Gi", status: "False", told: "GrowthHeld",
			words: []string{"ArchiveHealthy"},
		},
		"UnknownIsNotFed": {
			reason: "Neither does what nobody tells.",
			spec:   growing, filled: full("Low", 90, "", "49Gi"), passes: 3, want: "50Gi", status: "False", told: "StorageLow",
		},
		"EnoughRoom": {
			reason: "It is not time yet.",
			spec:   growing, filled: full("Ok", 80, observev1alpha1.FillData, "49Gi"), passes: 3, want: "50Gi", status: "True", told: "StorageReady",
		},
		"NoMoreThanAskedFor": {
			reason: "Without the block nothing grows by itself.",
			spec:   basic, filled: data, passes: 3, want: "50Gi", status: "False", told: "StorageLow", words: []string{"Raise spec.storage"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			w.stuck = tc.stuck
			if tc.filled.disk != "" {
				w.filled["orders-db-a"] = tc.filled
			}
			w.react()
			w.edit(tc.spec)
			before := w.revisions()
			for range tc.passes {
				w.pass()
			}
			p := w.plan()
			if got := compose.Text(w.request.Observed[names.VolumeClaim].Map(), "spec", "forProvider", "size"); got != tc.want {
				t.Errorf("\n%s\nsize of the VolumeClaim: want %s, got %s", tc.reason, tc.want, got)
			}
			status, reason, message := condition(p, "StorageHealthy")
			if status != tc.status || reason != tc.told {
				t.Errorf("\n%s\nStorageHealthy: want %s %s, got %s %s: %s", tc.reason, tc.status, tc.told, status, reason, message)
			}
			for _, word := range tc.words {
				if !strings.Contains(message, word) {
					t.Errorf("\n%s\nwant %q in %q", tc.reason, word, message)
				}
			}
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("\n%s\nno member is changed for its storage: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStorageIsKept(t *testing.T) {
	w := running(t, basic)
	w.filled["orders-db-a"] = full("Low", 90, observev1alpha1.FillData, "49Gi")
	w.react()
	w.edit(growing)
	for range 3 {
		w.pass()
	}
	delete(w.filled, "orders-db-a")
	w.edit(strings.Replace(growing, "replicas: 3", "replicas: 4", 1))
	for range 3 {
		w.pass()
	}
	if got := compose.Text(w.request.Observed[names.VolumeClaim].Map(), "spec", "forProvider", "size"); got != "60Gi" {
		t.Errorf("size after the volume was emptied: want what it has grown to, got %s", got)
	}
	claim, _ := compose.List(w.request.Observed["member-d"].Map(), "spec", "volumeClaimTemplates")[0].(map[string]any)
	if got := compose.Text(claim, "spec", "resources", "requests", "storage"); got != "60Gi" {
		t.Errorf("a new member has to hold the same data: want 60Gi, got %s", got)
	}
	w.edit(strings.Replace(basic, "replicas: 3", "replicas: 4", 1))
	w.pass()
	if got := told(t, w.plan()).Storage; got.Wanted != "50Gi" || got.Size != "60Gi" {
		t.Errorf("status.storage without the block: want 50Gi of 60Gi, got %+v", got)
	}
}
