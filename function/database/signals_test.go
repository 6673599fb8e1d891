// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/signals"
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

// hookedBySignals is a Database with hooks for Signals only.
const hookedBySignals = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, maintenance: {hooks: {onSignal: [
  {name: vacuum, timeout: 10m, sql: {statement: "VACUUM $(HOME)"}},
  {name: tell, http: {url: "http://chat.tools.svc/slow"}}]}}}`

func asksFor(w *world, name, hook string) observev1alpha1.ActiveSignal {
	return observev1alpha1.ActiveSignal{
		Name: name, UID: name + "-uid", Do: string(eventsv1alpha1.ActHook), Hook: hook, Cause: "shop: $(PGPASSWORD)", Until: metav1.NewTime(w.request.Now.Add(time.Hour)),
	}
}

// signalJobs that exist, by their names within the composition.
func (w *world) signalJobs() []string {
	var all []string
	for _, name := range compose.SortedKeys(w.request.Observed) {
		if strings.HasPrefix(name, names.SignalHookPrefix) {
			all = append(all, name)
		}
	}
	return all
}

// runsOf hooks that Signals asked for, as the status has them.
func (w *world) runsOf() []string {
	var all []string
	for _, r := range signals.Remembered(w.request.Composite.Map()) {
		all = append(all, r.Name+" "+string(r.Hook.Result))
	}
	return all
}

// TestSignalRunsAHook shows that each Signal has a Job run the hook that it names, once, one after the other, and without a change.
func TestSignalRunsAHook(t *testing.T) {
	w := running(t, hookedBySignals)
	before := w.revisions()
	job := func(name string) string { return names.SignalHookPrefix + hooks.SignalID("signal-"+name+"-uid") }
	tell := func(all ...observev1alpha1.ActiveSignal) {
		w.signals = all
		w.react()
		w.pass()
		w.pass()
	}
	vacuum, slow, other := asksFor(w, "bloat", "vacuum"), asksFor(w, "slow", "tell"), asksFor(w, "typo", "vacum")
	tell(vacuum, slow, other)
	if diff := cmp.Diff([]string{job("bloat")}, w.signalJobs()); diff != "" {
		t.Fatalf("want the first: -want, +got:\n%s", diff)
	}
	raw := encodedObject(t, w.plan(), names.HooksNetworkPolicy)
	if !strings.Contains(raw, `"port":5432`) || !strings.Contains(raw, "tools") {
		t.Errorf("its pods reach members and what the spec names, got %s", raw)
	}
	text, err := json.Marshal(w.request.Observed[job("bloat")].Map())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "VACUUM $$(HOME)") || strings.Contains(string(text), "PGPASSWORD") {
		t.Errorf("the Job has the statement of the spec, and nothing that a sender chose: %s", text)
	}
	st := told(t, w.plan()).Signals
	if len(st) != 3 || st[2].Ignored != `spec.maintenance.hooks.onSignal has no hook "vacum": declare it, or name another one` {
		t.Errorf("want the reason of what is refused, got %+v", st)
	}

	w.fails(job("bloat"), w.request.Now, w.request.Now)
	p := w.pass()
	if len(p.Events) != 1 || p.Events[0].Reason != "HookFailed" || !p.Events[0].Warning {
		t.Errorf("want an event of the failure, got %+v", p.Events)
	}
	w.pass()
	if diff := cmp.Diff([]string{"bloat Failed", "slow Running"}, w.runsOf()); diff != "" {
		t.Errorf("the next follows: -want, +got:\n%s", diff)
	}
	if status, reason, message := condition(w.pass(), "HooksPassed"); status != "False" || reason != "HookFailed" || !strings.Contains(message, `hook "vacuum" of Signal "bloat" failed: its Job failed`) {
		t.Errorf("the condition is %s %s %s", status, reason, message)
	}
	if status, reason, _ := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("a hook of a Signal is no change, got %s", reason)
	}

	for name, lose := range map[string]func(){
		"the Job":      func() { delete(w.request.Observed, job("bloat")) },
		"the Signals":  func() { tell(); tell(vacuum, slow, other) },
		"the Topology": func() { delete(w.request.Observed, names.Topology); w.pass(); w.react() },
	} {
		was := w.runsOf()
		lose()
		w.pass()
		w.pass()
		if diff := cmp.Diff(was, w.runsOf()); diff != "" {
			t.Errorf("after the loss of %s: -was, +is:\n%s", name, diff)
		}
	}
	if w.request.Observed[job("bloat")] != nil {
		t.Error("a Job that was deleted is not made again")
	}

	// The second one still runs when all Signals have ended, and no other follows.
	w.signals = nil
	w.request.Now = w.request.Now.Add(time.Hour)
	w.react()
	w.pass()
	if diff := cmp.Diff([]string{"slow Failed"}, w.runsOf()); diff != "" {
		t.Errorf("a hook without a result has failed after its time: -want, +got:\n%s", diff)
	}
	w.pass()
	w.pass()
	if len(w.signalJobs()) > 0 || w.request.Observed[names.HooksNetworkPolicy] != nil || len(w.runsOf()) > 0 {
		t.Errorf("nothing stays after that, got %q", w.signalJobs())
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a member was changed: -before, +after:\n%s", diff)
	}
}

// TestSignalHookWaits shows that SQL waits for a leader, which a request does not, and that what waits runs when its Signal has not ended.
func TestSignalHookWaits(t *testing.T) {
	w := running(t, hookedBySignals)
	w.signals = []observev1alpha1.ActiveSignal{asksFor(w, "bloat", "vacuum"), asksFor(w, "down", "tell")}
	w.react()
	compose.Map(w.request.Observed[names.Topology].Map(), "status", "atProvider")["phase"] = observev1alpha1.TopologyNoLeader
	w.compose(w.plan())
	if diff := cmp.Diff([]string{"down Running"}, w.runsOf()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
