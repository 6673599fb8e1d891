// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// hookSpec of a Database whose members have to be restarted, with hooks.
func hookSpec(more string) string {
	return `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {max_connections: "200"}, maintenance: {hooks: {` + more + `}}}`
}

const twoHooks = `
  before: [{name: stop-jobs, sql: {statement: "SELECT $$a$$"}}],
  after: [{name: tell, http: {url: "http://chat.tools.svc/done"}, onFailure: Stop}]`

// job that runs now, and what its end makes of it.
func (w *world) job(end string) string {
	w.t.Helper()
	for resource, o := range w.request.Observed {
		if o.Map()["kind"] == "Job" && strings.HasPrefix(resource, names.HookPrefix) && o.Map()["status"] == nil {
			o.Map()["status"] = map[string]any{"conditions": []any{map[string]any{"type": end, "status": "True"}}}
			return resource
		}
	}
	return ""
}

// until a hook's Job runs.
func (w *world) untilJob() bool {
	for range 6 {
		w.pass()
		for resource, o := range w.request.Observed {
			if strings.HasPrefix(resource, names.HookPrefix) && o.Map()["status"] == nil {
				return true
			}
		}
	}
	return false
}

// restarted members so far.
func (w *world) restarted(was map[string]string) int {
	n := 0
	for letter, r := range w.revisions() {
		if r != was[letter] {
			n++
		}
	}
	return n
}

func TestHooks(t *testing.T) {
	w := running(t, basic)
	was := w.revisions()
	w.edit(hookSpec(twoHooks))
	if !w.untilJob() || w.restarted(was) > 0 {
		t.Fatalf("want the hook before members are touched, got %d members", w.restarted(was))
	}
	for range 3 {
		p := w.pass()
		if status, reason, _ := condition(p, "Updated"); status != "False" || reason != "HookRunning" || w.restarted(was) > 0 {
			t.Fatalf("want members to wait, got %s %s and %d members", status, reason, w.restarted(was))
		}
	}
	want := []v1alpha1.HookStatus{{Name: "stop-jobs", When: "Before", State: "Running"}, {Name: "tell", When: "After", State: "Waiting"}}
	got := told(t, w.plan()).Hooks
	for i := range got {
		if (got[i].Job == "") != (got[i].State == "Waiting") {
			t.Errorf("want the Job of a hook that has one, got %+v", got[i])
		}
		got[i].Job = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
	w.job("Complete")
	for i := 0; i < 30 && w.restarted(was) < len(was); i++ {
		w.react()
		w.compose(w.plan())
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "False" {
		t.Errorf("want the change to last while the last member starts and the hook after has not run, got %s %s %s", status, reason, message)
	}
	if !w.untilJobAfter(was) {
		t.Fatalf("want all members to be restarted and then the hook after, got %d", w.restarted(was))
	}
	if status, reason, _ := condition(w.pass(), "Updated"); status != "False" || reason != "HookRunning" {
		t.Errorf("want the change to last as long as its hooks, got %s %s", status, reason)
	}
	w.job("Complete")
	for range 4 {
		w.pass()
	}
	for resource := range w.request.Observed {
		if strings.HasPrefix(resource, names.Hooks) || strings.HasPrefix(resource, names.HookPrefix) {
			t.Errorf("want nothing of hooks to stay, got %s", resource)
		}
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("want it to be over, got %s %s %s", status, reason, message)
	}
}

// untilJobAfter all members were restarted.
func (w *world) untilJobAfter(was map[string]string) bool {
	for range 12 {
		if w.untilJob() {
			return w.restarted(was) == len(was)
		}
	}
	return false
}

func TestHookFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		hooks  string
		undo   func(w *world)
		state  string
	}{
		"Again": {
			reason: "Without its Job a hook that failed is run again.", hooks: twoHooks,
			undo: func(w *world) {
				for resource, o := range w.request.Observed {
					if o.Map()["kind"] == "Job" && strings.HasPrefix(resource, names.HookPrefix) {
						delete(w.request.Observed, resource)
					}
				}
			},
			state: "Running",
		},
		"Corrected": {
			reason: "A hook that is edited is another one.", hooks: twoHooks,
			undo: func(w *world) { w.edit(hookSpec(strings.Replace(twoHooks, "$$a$$", "1", 1))) }, state: "Running",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			was := w.revisions()
			w.edit(hookSpec(tc.hooks))
			w.untilJob()
			failed := w.job("Failed")
			for range 3 {
				w.pass()
			}
			p := w.plan()
			status, reason, message := condition(p, "Updated")
			if status != "False" || reason != "HookFailed" || !strings.Contains(message, "job/orders-db-"+failed) || !strings.Contains(message, `hook "stop-jobs" of spec.maintenance.hooks.before failed`) {
				t.Errorf("want it to name hook and Job, got %s %s %q", status, reason, message)
			}
			if c := told(t, p).Change; c == nil || c.State != v1alpha1.ChangeFailed || w.restarted(was) > 0 || !p.Ready {
				t.Errorf("want a Database as it was and a change that failed, got %+v, %d members, ready %t", c, w.restarted(was), p.Ready)
			}
			tc.undo(w)
			if !w.untilJob() {
				t.Fatalf("\n%s\nwant a Job that runs", tc.reason)
			}
		})
	}
}

// TestHookTakenBack takes the edit back whose hook has failed: what was begun by hooks before is ended by those after, and
// nothing was touched.
func TestHookTakenBack(t *testing.T) {
	w := running(t, basic)
	was := w.revisions()
	w.edit(hookSpec(twoHooks))
	w.untilJob()
	w.job("Failed")
	w.pass()
	w.edit(strings.Replace(hookSpec(twoHooks), `config: {max_connections: "200"}, `, "", 1))
	if !w.untilJob() {
		t.Fatal("want the hook after")
	}
	w.job("Complete")
	for range 4 {
		w.pass()
	}
	if status, _, message := condition(w.plan(), "Updated"); status != "True" || w.restarted(was) > 0 || len(told(t, w.plan()).Hooks) > 0 {
		t.Errorf("want it to be over and nothing touched, got %s %q, %d members", status, message, w.restarted(was))
	}
}

func TestHookContinues(t *testing.T) {
	w := running(t, basic)
	was := w.revisions()
	w.edit(hookSpec(`before: [{name: tell, http: {url: "https://192.0.2.7:8443/x"}, onFailure: Continue}]`))
	w.untilJob()
	w.job("Failed")
	for range 24 {
		w.pass()
	}
	if status, _, message := condition(w.plan(), "Updated"); status != "True" || w.restarted(was) != 3 {
		t.Errorf("want the change to go on, got %s %q, %d members", status, message, w.restarted(was))
	}
}

// TestHookJob looks at what a Job is given.
func TestHookJob(t *testing.T) {
	w := running(t, basic)
	w.edit(hookSpec(twoHooks))
	w.untilJob()
	for resource, o := range w.request.Observed {
		if o.Map()["kind"] != "Job" || !strings.HasPrefix(resource, names.HookPrefix) {
			continue
		}
		spec := compose.Map(o.Map(), "spec", "template", "spec")
		container := compose.List(spec, "containers")[0].(map[string]any)
		env := compose.List(container, "env")

		// Kubernetes makes one $ of two.
		if got := env[1].(map[string]any); got["name"] != "CAPSTAN_HOOK_SQL" || got["value"] != "SELECT $$$$a$$$$" {
			t.Errorf("want the statement as it was written, got %v", got)
		}
		volume := compose.List(spec, "volumes")[0].(map[string]any)
		if got := compose.Text(volume, "secret", "secretName"); got != "orders-db-app" {
			t.Errorf("want the Secret of the consumer, got %q", got)
		}
	}
}

func TestCheckHooks(t *testing.T) {
	cases := map[string]struct{ reason, hooks, want string }{
		"Good":     {reason: "As it should be.", hooks: twoHooks},
		"Reader":   {reason: "SQL is run as somebody.", hooks: `before: [{name: x, sql: {database: none, statement: "SELECT 1"}}]`, want: "must be a database that one of spec.consumers reads and writes"},
		"User":     {reason: "A password would be read by all.", hooks: `before: [{name: x, http: {url: "http://a:b@c/"}}]`, want: "must be an http or https URL without a user"},
		"Scheme":   {reason: "No other scheme.", hooks: `before: [{name: x, http: {url: "ftp://c/"}}]`, want: "must be an http or https URL without a user"},
		"Nothing":  {reason: "It does nothing.", hooks: `before: [{name: x}]`, want: "set exactly one of sql and http"},
		"Timeout":  {reason: "A day is too long.", hooks: `after: [{name: x, timeout: 24h, http: {url: "http://c/"}}]`, want: "must be from 1s to 1h"},
		"Fallback": {reason: "Not a word for it.", hooks: `after: [{name: x, onFailure: Retry, http: {url: "http://c/"}}]`, want: "Retry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, message := condition(newWorld(t, hookSpec(tc.hooks)).plan(), "Accepted")
			if tc.want != "" && !strings.Contains(message, tc.want) || tc.want == "" && strings.Contains(message, "hooks") {
				t.Errorf("\n%s\nwant %q, got %q", tc.reason, tc.want, message)
			}
		})
	}
}
