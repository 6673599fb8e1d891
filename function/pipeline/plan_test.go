// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/names"
)

// template of the pods of a Job or CronJob, its container, and the plan of its companion.
func template(t *testing.T, o compose.Object, below ...string) (pod, container map[string]any, plan runner.Plan) {
	t.Helper()
	m := compose.Map(o.Map(), append(below, "spec", "template")...)
	pod = compose.Map(m, "spec")
	container, _ = compose.List(pod, "containers")[0].(map[string]any)
	annotation := compose.Text(m, "metadata", "annotations", runner.AnnotationPlan)
	if err := json.Unmarshal([]byte(annotation), &plan); err != nil {
		t.Fatalf("the plan %q: %v", annotation, err)
	}
	return pod, container, plan
}

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		reason, spec string
		want         []string
	}{
		"ByID":     {"A run has a Job at once.", byIDSpec, []string{"history", "job-daily-run-a", "networkpolicy", "service", "serviceaccount"}},
		"Schedule": {"Kubernetes makes the Jobs of a schedule.", cronSpec, []string{"cronjob", "history", "networkpolicy", "service", "serviceaccount"}},
		"Stream":   {"Without schedule and run it has no end.", streamSpec, []string{"history", "job-daily-s1", "networkpolicy", "service", "serviceaccount"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.settle()
			if diff := cmp.Diff(tc.want, compose.SortedKeys(w.Composed)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	w := newWorld(t, cronSpec)
	w.edit(`{concurrency: Replace, deadline: 6h, schedule: {cron: "0 3 * * *", timeZone: Europe/Berlin, startWithin: 1h}}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineWaiting || compose.Text(w.status, "nextRun") != "2026-11-21T02:00:00Z" {
		t.Errorf("phase %s, next run %s", w.phase(), compose.Text(w.status, "nextRun"))
	}
	c := w.Composed[names.CronJob].Map()
	want := map[string]any{
		"schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Replace", "suspend": false, "startingDeadlineSeconds": 3600.0,
		"successfulJobsHistoryLimit": 10.0, "failedJobsHistoryLimit": 10.0,
	}
	for field, value := range want {
		if got := compose.Field(c, "spec", field); fmt.Sprint(got) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", field, got, value)
		}
	}
	job := compose.Map(c, "spec", "jobTemplate", "spec")
	if fmt.Sprint(job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) != "21600 604800" {
		t.Errorf("deadline %v, kept for %v", job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"])
	}
	_, container, plan := template(t, w.Composed[names.CronJob], "spec", "jobTemplate")
	if plan.Run != "" || plan.Retry.Attempts != 3 || plan.Roles[0].Main.Args != true {
		t.Errorf("plan %+v", plan)
	}
	if got := fmt.Sprintf("%v %v", container["command"], container["args"]); got != "[/capstan/bin/companion run --] [features]" {
		t.Errorf("command %s", got)
	}

	w.report("daily-29393400", `{phase: Running, attempts: 1}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineRunning || w.condition(v1alpha1.TypeSucceeded) != "Unknown/NotFinished" {
		t.Errorf("phase %s, %s", w.phase(), w.condition(v1alpha1.TypeSucceeded))
	}
	w.now = w.now.Add(7*time.Minute + 12*time.Second)
	w.report("daily-29393400", `{phase: Succeeded, attempts: 2}`)
	w.settle()
	last := compose.Map(w.status, "lastRun")
	if w.phase() != v1alpha1.PipelineSucceeded || last["took"] != "7m12s" || last["attempts"] != 2.0 || last["id"] != "29393400" || !w.plan.Ready {
		t.Errorf("phase %s, last run %v, ready %v", w.phase(), last, w.plan.Ready)
	}
	delete(w.reports, "daily-29393400")
	w.settle()
	if w.phase() != v1alpha1.PipelineSucceeded {
		t.Errorf("a Job that is tidied up is forgotten: %s", w.phase())
	}
	w.edit(`{suspend: true}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineSuspended || compose.Field(w.Composed[names.CronJob].Map(), "spec", "suspend") != true || compose.Text(w.status, "nextRun") != "" {
		t.Errorf("phase %s, next %s", w.phase(), compose.Text(w.status, "nextRun"))
	}
}

func TestEnds(t *testing.T) {
	tests := map[string]struct {
		reason    string
		report    string
		job       string
		phase     v1alpha1.PipelinePhase
		condition string
		says      string
	}{
		"Succeeded": {"It is done.", `{phase: Succeeded, attempts: 1}`, complete, v1alpha1.PipelineSucceeded, "True/Succeeded", "run a succeeded"},
		"Failed":    {"The last lines are told, with a remedy.", failedUser, gaveUp, v1alpha1.PipelineFailed, "False/ProgramFailed", "no such table. Correct the spec or the image, and set another spec.run.id"},
		"Late":      {"The deadline is over.", `{phase: Failed, attempts: 1}`, late, v1alpha1.PipelineFailed, "False/DeadlineExceeded", "Raise spec.deadline"},
		"Deleted":   {"Somebody deleted the Job: it is not done again.", `{phase: Running}`, `{metadata: {deletionTimestamp: "2026-11-20T12:00:00Z"}}`, v1alpha1.PipelineFailed, "False/JobDeleted", "deletes the Job"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, byIDSpec)
			w.settle()
			w.report("daily-run-a", `{phase: Running, attempts: 1}`)
			w.settle()
			if w.phase() != v1alpha1.PipelineRunning || !w.plan.Ready {
				t.Fatalf("phase %s, ready %v", w.phase(), w.plan.Ready)
			}
			w.report("daily-run-a", tc.report)
			w.kubernetes("daily-run-a", tc.job)
			w.settle()
			if w.phase() != tc.phase || w.condition(v1alpha1.TypeSucceeded) != tc.condition || !strings.Contains(w.message(v1alpha1.TypeSucceeded), tc.says) {
				t.Errorf("%s: phase %s, %s: %s", tc.reason, w.phase(), w.condition(v1alpha1.TypeSucceeded), w.message(v1alpha1.TypeSucceeded))
			}
			w.gone()
			w.settle()
			w.now = w.now.Add(200 * time.Hour)
			w.settle()
			w.gone()
			w.settle()
			if w.phase() != tc.phase || len(w.jobs()) != 0 {
				t.Errorf("a week later: phase %s, Jobs %v", w.phase(), w.jobs())
			}
		})
	}
}

// TestLastWords: the reason of a failure comes after the Job has failed, much later, or never. A rule about memory counts also then.
func TestLastWords(t *testing.T) {
	w := newWorld(t, byIDSpec)
	w.edit(raising)
	w.settle()
	w.kubernetes("daily-run-a", gaveUp)
	w.settle()
	if w.condition(v1alpha1.TypeSucceeded) != "Unknown/NotFinished" || w.plan.TTL > lastWordsSoon {
		t.Fatalf("%s, asked again in %s", w.condition(v1alpha1.TypeSucceeded), w.plan.TTL)
	}
	w.now = w.now.Add(31 * time.Second)
	w.settle()
	if w.condition(v1alpha1.TypeSucceeded) != "False/ProgramFailed" || !strings.Contains(w.message(v1alpha1.TypeSucceeded), "read the logs") {
		t.Errorf("%s: %s", w.condition(v1alpha1.TypeSucceeded), w.message(v1alpha1.TypeSucceeded))
	}
	w.report("daily-run-a", failedMemory)
	w.settle()
	if got := fmt.Sprint(w.status["runs"]); !strings.Contains(got, "was killed for its memory") {
		t.Errorf("the provider was stopped, and says now what it found: %s", got)
	}
	if !slices.Contains(w.jobs(), "daily-run-a-m1") {
		t.Errorf("the run should begin again with more memory, got %v", w.jobs())
	}
}

const lastWordsSoon = 40 * time.Second

func TestAnotherRun(t *testing.T) {
	tests := map[string]struct {
		reason, concurrency string
		want, after         []string
	}{
		"Forbid":  {"It waits for the first.", "Forbid", []string{"daily-run-a"}, []string{"daily-run-a", "daily-run-b"}},
		"Allow":   {"Both run.", "Allow", []string{"daily-run-a", "daily-run-b"}, []string{"daily-run-a", "daily-run-b"}},
		"Replace": {"The first ends before the other begins.", "Replace", []string{"daily-run-a"}, []string{"daily-run-b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, byIDSpec)
			w.settle()
			before := composetest.Encoded(w.Composed[jobResource("daily-run-a")].Map())
			w.edit(`{concurrency: ` + tc.concurrency + `, run: {id: b, args: [features, --day=2]}, image: registry.example.org/features:2}`)
			w.settle()
			if diff := cmp.Diff(tc.want, w.jobs()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if o := w.Composed[jobResource("daily-run-a")]; o != nil && composetest.Encoded(o.Map()) != before {
				t.Error("a run that has begun was changed by the edit")
			}
			if tc.concurrency == "Replace" {
				w.gone()
			} else {
				w.report("daily-run-a", `{phase: Succeeded}`)
				w.kubernetes("daily-run-a", complete)
			}
			w.settle()
			if diff := cmp.Diff(tc.after, w.jobs()); diff != "" {
				t.Errorf("%s: afterwards: -want, +got:\n%s", tc.reason, diff)
			}
			_, container, plan := template(t, w.Composed[jobResource("daily-run-b")])
			if got := fmt.Sprintln(container["image"], container["args"]); got != "registry.example.org/features:2 [features --day=2]\n" || plan.Run != "b" {
				t.Errorf("the next run has %s, id %s", got, plan.Run)
			}
			w.edit(`{run: {id: a}}`)
			w.report("daily-run-b", `{phase: Succeeded}`)
			w.kubernetes("daily-run-b", complete)
			w.settle()
			if got := len(w.jobs()); got != len(tc.after) {
				t.Errorf("an id that there was begins again: %v", w.jobs())
			}
		})
	}
}

func TestMemory(t *testing.T) {
	limit := func(w *world, job string) string {
		_, container, _ := template(t, w.Composed[jobResource(job)])
		return compose.Text(container, "resources", "limits", "memory")
	}
	fail := func(w *world, job, report string) {
		w.report(job, report)
		w.kubernetes(job, gaveUp)
		w.settle()
	}
	t.Run("ByID", func(t *testing.T) {
		w := newWorld(t, byIDSpec)
		w.edit(raising)
		w.settle()
		if w.condition(v1alpha1.TypeAccepted) != "True/Valid" {
			t.Fatalf("%s: %s", w.condition(v1alpha1.TypeAccepted), w.message(v1alpha1.TypeAccepted))
		}
		rules := compose.List(w.Composed[jobResource("daily-run-a")].Map(), "spec", "podFailurePolicy", "rules")
		if got := composetest.Encoded(rules[len(rules)-1]); !strings.Contains(got, "137") || !strings.Contains(got, "FailJob") {
			t.Errorf("a container that is killed must end the Job: %s", got)
		}
		fail(w, "daily-run-a", failedMemory)
		if got := limit(w, "daily-run-a-m1"); got != "512Mi" {
			t.Errorf("memory %s, want twice 256Mi", got)
		}
		if w.phase() != v1alpha1.PipelineStarting || compose.Text(w.status, "lastRun", "memory") != "512Mi" || compose.Text(w.status, "lastRun", "id") != "a" {
			t.Errorf("phase %s, last run %v", w.phase(), compose.Map(w.status, "lastRun"))
		}
		w.now = w.now.Add(time.Minute)
		fail(w, "daily-run-a-m1", failedMemory)
		if got := limit(w, "daily-run-a-m2"); got != "1Gi" {
			t.Errorf("memory %s, want the most that the rule allows", got)
		}
		w.now = w.now.Add(time.Minute)
		fail(w, "daily-run-a-m2", failedMemory)
		if w.phase() != v1alpha1.PipelineFailed || !strings.Contains(w.message(v1alpha1.TypeSucceeded), "raised 2 times to 1Gi") {
			t.Errorf("phase %s: %s", w.phase(), w.message(v1alpha1.TypeSucceeded))
		}
	})
	t.Run("Killed", func(t *testing.T) {
		w := newWorld(t, byIDSpec)
		w.edit(raising)
		w.settle()
		fail(w, "daily-run-a", failedKilled)
		if got := limit(w, "daily-run-a-m1"); got != "256Mi" {
			t.Errorf("memory %s: it was not for want of memory", got)
		}
	})
	t.Run("Scheduled", func(t *testing.T) {
		w := newWorld(t, cronSpec)
		w.edit(raising)
		w.settle()
		w.report("daily-29393400", failedMemory)
		w.settle()
		if diff := cmp.Diff([]string{"daily-29393400-m1"}, w.jobs()); diff != "" {
			t.Fatalf("a scheduled run begins again with more memory: -want, +got:\n%s", diff)
		}
		_, _, plan := template(t, w.Composed[jobResource("daily-29393400-m1")])
		if plan.Run != "" || limit(w, "daily-29393400-m1") != "512Mi" {
			t.Errorf("its companion reads the time from the name: %+v", plan)
		}
		w.report("daily-29393400-m1", `{phase: Succeeded}`)
		w.kubernetes("daily-29393400-m1", complete)
		w.settle()
		if w.phase() != v1alpha1.PipelineSucceeded || len(w.jobs()) != 1 {
			t.Errorf("phase %s, Jobs %v", w.phase(), w.jobs())
		}
	})
	t.Run("Suspended", func(t *testing.T) {
		w := newWorld(t, byIDSpec)
		w.edit(raising)
		w.settle()
		w.edit(`{suspend: true}`)
		fail(w, "daily-run-a", failedMemory)
		if diff := cmp.Diff([]string{"daily-run-a"}, w.jobs()); diff != "" || !strings.Contains(w.message(v1alpha1.TypeSucceeded), "spec.suspend") {
			t.Errorf("a suspended Pipeline begins no run: %s: -want, +got:\n%s", w.message(v1alpha1.TypeSucceeded), diff)
		}
	})
	t.Run("NoRule", func(t *testing.T) {
		w := newWorld(t, byIDSpec)
		w.settle()
		fail(w, "daily-run-a", failedMemory)
		if w.phase() != v1alpha1.PipelineFailed || len(w.jobs()) != 1 {
			t.Errorf("phase %s, Jobs %v", w.phase(), w.jobs())
		}
	})
}

func TestStream(t *testing.T) {
	w := newWorld(t, streamSpec)
	w.settle()
	w.report("daily-s1", `{phase: Running, attempts: 3}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineRunning || compose.Number(w.status, 0, "stream", "restarts") != 2 {
		t.Errorf("phase %s, stream %v", w.phase(), compose.Map(w.status, "stream"))
	}
	w.edit(`{history: 5, keepFinishedFor: 1h}`)
	w.settle()
	if diff := cmp.Diff([]string{"daily-s1"}, w.jobs()); diff != "" {
		t.Errorf("an edit that reaches no pod rolls the stream: %s", diff)
	}
	w.edit(`{args: [features, --more]}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineUpgrading || len(w.jobs()) != 1 {
		t.Errorf("phase %s, Jobs %v: the pods of the last start are not gone", w.phase(), w.jobs())
	}
	w.gone()
	w.settle()
	if diff := cmp.Diff([]string{"daily-s2"}, w.jobs()); diff != "" {
		t.Fatalf("the edited stream starts: -want, +got:\n%s", diff)
	}
	w.report("daily-s2", failedUser)
	w.kubernetes("daily-s2", gaveUp)
	w.settle()
	if w.phase() != v1alpha1.PipelineFailed || !strings.Contains(w.message(v1alpha1.TypeSucceeded), "edit the spec") {
		t.Errorf("phase %s: %s", w.phase(), w.message(v1alpha1.TypeSucceeded))
	}
	w.edit(`{args: [features, --correct]}`)
	w.settle()
	if w.Composed[jobResource("daily-s3")] == nil {
		t.Fatalf("a correction starts it again: %v", w.jobs())
	}
	delete(w.Composed, jobResource("daily-s3"))
	w.settle()
	if w.Composed[jobResource("daily-s4")] == nil {
		t.Errorf("a stream whose Job was deleted starts again: %v", w.jobs())
	}
	w.edit(`{suspend: true}`)
	w.settle()
	if w.phase() != v1alpha1.PipelineSuspended {
		t.Errorf("phase %s", w.phase())
	}
	w.gone()
	w.settle()
	w.edit(`{suspend: false}`)
	w.settle()
	if w.Composed[jobResource("daily-s5")] == nil {
		t.Errorf("it goes on: %v", w.jobs())
	}
}

// TestReferencesLost: a Job that Crossplane has lost its reference to is neither made again nor taken for deleted.
func TestReferencesLost(t *testing.T) {
	w := newWorld(t, byIDSpec)
	w.settle()
	w.Lost = w.Composed
	w.Composed = map[string]compose.Object{}
	w.settle()
	if diff := cmp.Diff([]string{"daily-run-a"}, w.jobs()); diff != "" || w.condition(v1alpha1.TypeSucceeded) != "Unknown/NotFinished" {
		t.Errorf("%s: -want, +got:\n%s", w.condition(v1alpha1.TypeSucceeded), diff)
	}
}

func TestConfig(t *testing.T) {
	w := newWorld(t, byIDSpec)
	w.edit(`{config: {a: "1"}}`)
	w.settle()
	configs := func() (all []string) {
		for _, resource := range compose.SortedKeys(w.Composed) {
			if strings.HasPrefix(resource, names.ConfigPrefix) {
				all = append(all, resource)
			}
		}
		return all
	}
	first := configs()
	w.edit(`{config: {a: "2"}}`)
	w.settle()
	if got := configs(); len(got) != 2 {
		t.Errorf("a run that is active has the files %v mounted, and there is %v", first, got)
	}
	w.report("daily-run-a", `{phase: Succeeded}`)
	w.kubernetes("daily-run-a", complete)
	w.settle()
	if got := configs(); len(got) != 1 || got[0] == first[0] {
		t.Errorf("nothing uses %v any more, and there is %v", first, got)
	}
}

// TestScheduledConfig: Kubernetes may make a Job with the files of before until it has the edited CronJob, and a moment later the provider has
// reported it.
func TestScheduledConfig(t *testing.T) {
	w := newWorld(t, cronSpec)
	w.edit(`{config: {a: "1"}}`)
	w.report("daily-1", `{phase: Succeeded}`)
	w.settle()
	configs := func() int {
		return len(slices.DeleteFunc(compose.SortedKeys(w.Composed), func(name string) bool { return !strings.HasPrefix(name, names.ConfigPrefix) }))
	}
	w.edit(`{config: {a: "2"}}`)
	w.pass(false)
	if n := configs(); n != 2 {
		t.Errorf("the CronJob still has the files of before, and there are %d", n)
	}
	w.Composed[names.CronJob] = composetest.With(w.Composed[names.CronJob], composetest.Parse(t, `{status: {lastScheduleTime: "`+w.now.Format(time.RFC3339)+`"}}`))
	w.settle()
	if n := configs(); n != 2 {
		t.Errorf("a Job that was made at this moment may have the files of before, and there are %d", n)
	}
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	if n := configs(); n != 1 {
		t.Errorf("nothing uses the files of before any more, and there are %d", n)
	}
}

// TestEndIsSeen: a Job that Kubernetes deletes at once would be a run that nobody has seen end.
func TestEndIsSeen(t *testing.T) {
	w := newWorld(t, cronSpec)
	w.edit(`{keepFinishedFor: 0s}`)
	w.settle()
	if n := compose.NumberOf(w.Composed[names.CronJob], 0, "spec", "jobTemplate", "spec", "ttlSecondsAfterFinished"); n != 60 {
		t.Errorf("it stays for %d s", n)
	}
}

func TestSpark(t *testing.T) {
	w := newWorld(t, sparkSpec)
	w.edit(`{resources: {cpu: "2", memory: 4Gi}}`)
	w.settle()
	o := w.Composed[jobResource("daily-run-a")]
	if o == nil {
		t.Fatalf("%s: %s", w.condition(v1alpha1.TypeAccepted), w.message(v1alpha1.TypeAccepted))
	}
	if got := fmt.Sprintf("%v %v %s", compose.Field(o.Map(), "spec", "completions"), compose.Field(o.Map(), "spec", "completionMode"), composetest.Encoded(compose.Field(o.Map(), "spec", "successPolicy"))); got != `5 Indexed {"rules":[{"succeededIndexes":"0"}]}` {
		t.Errorf("the Job has %s", got)
	}
	pod, container, plan := template(t, o)
	if pod["subdomain"] != "daily-pipeline" || plan.Domain != "daily-pipeline.shop.svc" || fmt.Sprint(container["args"]) != "[features.py]" {
		t.Errorf("subdomain %v, domain %s, args %v", pod["subdomain"], plan.Domain, container["args"])
	}
	driver, _ := plan.Role(0)
	worker, _ := plan.Role(3)
	submit := strings.Join(driver.Main.Command, " ")
	for _, want := range []string{
		"/opt/spark/bin/spark-submit --master spark://$(CAPSTAN_LEADER):7077 --deploy-mode client", "--executor-memory 3392m", "spark.sql.shuffle.partitions=64", "spark.cores.max=8",
		"spark.driver.host=$(CAPSTAN_LEADER)",
	} {
		if !strings.Contains(submit, want) {
			t.Errorf("the driver lacks %q: %s", want, submit)
		}
	}
	if len(driver.Beside) != 1 || !driver.Main.Args || !worker.Serves || worker.Main.Args || !strings.Contains(strings.Join(worker.Main.Command, " "), "--cores 2 --memory 3392m") {
		t.Errorf("roles %+v, %+v", driver, worker)
	}
}

// TestUnreadable: a spec that does not decode has no defaults either, and the Job of a run that has ended stays as it is.
func TestUnreadable(t *testing.T) {
	w := newWorld(t, byIDSpec)
	w.settle()
	w.report("daily-run-a", `{phase: Succeeded}`)
	w.kubernetes("daily-run-a", complete)
	w.settle()
	before := composetest.Encoded(w.Composed)
	w.edit(`{run: {id: 0}}`)
	w.settle()
	if got := w.condition(v1alpha1.TypeAccepted); got != "False/InvalidSpec" {
		t.Errorf("Accepted is %s: %s", got, w.message(v1alpha1.TypeAccepted))
	}
	if composetest.Encoded(w.Composed) != before {
		t.Error("a spec that does not decode changes what there is")
	}
}

func TestRefused(t *testing.T) {
	tests := map[string]struct{ reason, spec, edit, field, says string }{
		"Zone":         {"Kubernetes would refuse it.", cronSpec, `{schedule: {cron: "0 3 * * *", timeZone: Mars/Base}}`, "spec.schedule.timeZone", "Europe/Berlin"},
		"Cron":         {"The minute is none.", cronSpec, `{schedule: {cron: "99 3 * * *"}}`, "spec.schedule.cron", "correct it"},
		"Never":        {"No February has it.", cronSpec, `{schedule: {cron: "0 3 30 2 *"}}`, "spec.schedule.cron", "never comes"},
		"Pattern":      {"The companion would refuse it.", byIDSpec, `{retry: {rules: [{when: {pattern: "("}, do: Fail}]}}`, "spec.retry.rules[0].when.pattern", "RE2"},
		"Backoff":      {"It would never grow.", byIDSpec, `{retry: {backoff: {from: 10m, to: 1m}}}`, "spec.retry.backoff.to", "at least from"},
		"TwoRaises":    {"Only one can be meant.", byIDSpec, `{retry: {rules: [{when: {class: OutOfMemory}, do: RetryWithMemory}, {when: {exitCodes: [3]}, do: RetryWithMemory}]}}`, "spec.retry.rules[1].do", "remove the others"},
		"Max":          {"It would never rise.", byIDSpec, `{retry: {rules: [{when: {class: OutOfMemory}, do: RetryWithMemory, max: 128Mi}]}}`, "spec.retry.rules[0].max", "more than spec.resources.memory"},
		"Own":          {"The companion sets it.", byIDSpec, `{env: [{name: CAPSTAN_RUN, value: x}]}`, "spec.env[0].name", "choose another name"},
		"Spark":        {"Its own processes take more.", sparkSpec, `{resources: {memory: 512Mi}}`, "spec.resources.memory", "at least"},
		"SparkConf":    {"Capstan sets it.", sparkSpec, `{spark: {conf: {spark.master: local}}}`, "spec.spark.conf[spark.master]", "remove it"},
		"StreamMemory": {"A stream has no other run that could have more memory, and would never start again.", streamSpec, raising, "spec.retry.rules[0].do", "raise spec.resources.memory"},
		"FlinkEnv":     {"Kubernetes refuses two variables of a name.", flinkSpec, `{env: [{name: POD_IP, value: x}]}`, "spec.env[0].name", "choose another name"},
		"FlinkVolume":  {"Kubernetes refuses two volumes of a name.", flinkSpec, `{pod: {volumes: [{name: capstan-state, emptyDir: {}}]}}`, "spec.pod.volumes[0].name", "capstan-state"},
		"FlinkDevices": {"No pod of Flink has claims of devices.", flinkSpec, `{resources: {deviceRequest: {deviceClassName: gpu.nvidia.com}}}`, "spec.resources.deviceRequest", "remove it"},
		"FlinkShared":  {"No pod of Flink has shared memory.", flinkSpec, `{flink: {mainClass: a, state: {claimName: a}, taskManagerResources: {sharedMemory: 1Gi}}}`, "spec.flink.taskManagerResources.sharedMemory", "remove it"},
		"FlinkGPU":     {"Kubernetes would refuse it.", flinkSpec, `{flink: {mainClass: a, state: {claimName: a}, taskManagerResources: {gpu: kubernetes.io/gpu}}}`, "spec.flink.taskManagerResources.gpu", "vendor/device"},
		"Mount":        {"It would hide the companion.", byIDSpec, `{config: {a: b}, volumeMounts: [{name: config, mountPath: /capstan}]}`, "spec.volumeMounts[0].mountPath", "choose another folder"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.settle()
			before := composetest.Encoded(w.Composed)
			w.edit(tc.edit)
			w.settle()
			if w.condition(v1alpha1.TypeAccepted) != "False/InvalidSpec" || !strings.Contains(w.message(v1alpha1.TypeAccepted), tc.field) || !strings.Contains(w.message(v1alpha1.TypeAccepted), tc.says) {
				t.Errorf("%s: %s: %s", tc.reason, w.condition(v1alpha1.TypeAccepted), w.message(v1alpha1.TypeAccepted))
			}
			if composetest.Encoded(w.Composed) != before {
				t.Error("a spec that is not accepted changes what there is")
			}
		})
	}
}
