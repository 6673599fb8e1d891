// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestSignalHoldsChanges shows that no member is changed while a Signal holds, and that the change begins when it has ended.
func TestSignalHoldsChanges(t *testing.T) {
	w := running(t, basic)
	w.signals = []observev1alpha1.ActiveSignal{{
		Name: "sale", UID: "u", Do: string(eventsv1alpha1.ActHold), Cause: "shop: sale", Until: metav1.NewTime(w.request.Now.Add(time.Hour)),
	}}
	w.react()
	before := w.revisions()
	w.edit("{" + restart + "}")
	for range 4 {
		w.pass()
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a member was changed: -before, +after:\n%s", diff)
	}
	_, reason, message := condition(w.plan(), "Updated")
	if reason != "Frozen" || !strings.Contains(message, `Signal "sale" (shop: sale) blocks every change: it ends at 2026-11-20T13:00:00Z`) {
		t.Errorf("want the Signal and its end in the condition, got %s: %s", reason, message)
	}
	w.request.Now = w.request.Now.Add(time.Hour)
	for range 12 {
		w.pass()
	}
	if diff := cmp.Diff(before, w.revisions()); diff == "" {
		t.Error("the Signal has ended, although the provider still reports it, and no member was changed")
	}
}

// TestSignalBacksUp shows that a Signal asks for one backup, beside the one that the spec names, whose Job does not come again when the
// Signal ends.
func TestSignalBacksUp(t *testing.T) {
	w := running(t, withBackup(`{enabled: true, now: by-hand}`))
	w.backup = wellBackedUp()
	w.react()
	w.pass()
	jobs := func() []string {
		var all []string
		for _, name := range compose.SortedKeys(w.request.Observed) {
			if strings.HasPrefix(name, names.BackupNowPrefix) {
				all = append(all, name)
			}
		}
		return all
	}
	byHand := names.BackupNowPrefix + backup.NowName("by-hand")
	if diff := cmp.Diff([]string{byHand}, jobs()); diff != "" {
		t.Fatalf("before: -want, +got:\n%s", diff)
	}
	signal := observev1alpha1.ActiveSignal{Name: "deploy", UID: "3f2a", Do: string(eventsv1alpha1.ActBackup), Until: metav1.NewTime(w.request.Now.Add(time.Hour))}
	uid := compose.Text(w.request.Observed[byHand].Map(), "metadata", "uid")
	w.signals = []observev1alpha1.ActiveSignal{signal}
	w.react()
	w.pass()
	if got := jobs(); len(got) != 2 {
		t.Errorf("want a Job for the Signal beside the one of the spec, got %v", got)
	}
	w.signals = append(w.signals, observev1alpha1.ActiveSignal{Name: "second", UID: "4b6c", Do: signal.Do, Until: signal.Until})
	w.react()
	w.pass()
	if got := jobs(); len(got) != 2 {
		t.Errorf("backups of Signals follow one another, got %v", got)
	}
	w.signals = nil
	w.react()
	w.pass()
	if got := jobs(); len(got) != 2 {
		t.Errorf("a backup that runs should end, although its Signal has, got %v", got)
	}
	ofSignal := names.BackupNowPrefix + backup.SignalName(signal)
	w.fails(ofSignal, w.request.Now, w.request.Now)
	w.pass()
	if diff := cmp.Diff([]string{byHand}, jobs()); diff != "" {
		t.Errorf("after the Signal: -want, +got:\n%s", diff)
	}
	if now := compose.Text(w.request.Observed[byHand].Map(), "metadata", "uid"); now != uid {
		t.Error("the backup of the spec is taken a second time")
	}
}
