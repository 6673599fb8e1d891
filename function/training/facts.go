// SPDX-License-Identifier: Apache-2.0

package training

import (
	"errors"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/podspec"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

var jobGVK = batchv1.SchemeGroupVersion.WithKind("Job")

// requiredJob is the name that the Job of the last run is required under.
const requiredJob = "job"

// facts are everything that a plan is made of: the request, decoded once. Nothing changes them after gather.
type facts struct {
	compose.Request
	names.Names

	// spec with all its defaults, and the revision of what reaches the pods.
	spec     v1alpha1.TrainingSpec
	revision string

	// problems of the spec. As long as there are any, what runs is not changed.
	problems []check.Problem

	// remembered of the runs, jobs as observed by the number of their run, and what is reported about the ledger's run.
	remembered runs.Ledger
	jobs       map[int32]runs.Job
	adopted    int32 // run whose Job exists without a reference of Crossplane, or 0
	report     *observev1alpha1.RunObservation

	// schedule of the spec, or nil.
	schedule *runs.Schedule
}

// gather the facts of a request. It errs only for a composite resource that has no name or namespace.
func gather(r compose.Request) (*facts, error) {
	xr := r.Composite.Map()
	f := &facts{
		Request: r,
		Names:   names.Names{Name: compose.Text(xr, "metadata", "name"), Namespace: compose.Text(xr, "metadata", "namespace")},
		jobs:    map[int32]runs.Job{},
	}
	if f.Name == "" || f.Namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	f.Now = r.Now.UTC().Truncate(time.Second)
	f.spec, f.revision, f.problems = read(r)
	if len(f.problems) == 0 {
		f.problems = check.Errors(podvalidation.Devices(field.NewPath("spec", "resources"), f.spec.Resources, f.Kinds[podspec.ClaimTemplateGVK]))
	}
	if s := f.spec.Schedule; s != nil && len(f.problems) == 0 {
		f.schedule = new(schedule(s))
	}
	for resource, o := range r.Observed {
		if run := names.RunOf(names.JobPrefix, resource); run > 0 {
			f.jobs[run] = job(o)
		}
	}
	if o := r.Required[requiredJob]; o != nil && f.ours(o) {
		if run := names.RunOf(f.Name+"-r", compose.TextOf(o, "metadata", "name")); run > 0 {
			f.jobs[run] = job(o)
		}
	}
	report, _ := observed.Status[observev1alpha1.RunObservation](r.Observed[names.Run])
	m := runs.Memory{Ledgers: []string{compose.Text(xr, "status", "ledger")}, Jobs: f.jobs, Report: report}
	if o := r.Observed[names.Service]; o != nil {
		m.Ledgers = append(m.Ledgers, compose.TextOf(o, "metadata", "annotations", names.AnnotationLedger))
	}
	if o := r.Observed[names.Run]; o != nil {
		m.Revision = compose.TextOf(o, "metadata", "annotations", names.AnnotationRevision)
		m.Rerun = compose.TextOf(o, "metadata", "annotations", names.AnnotationRerun)
		m.Cycle = whole(compose.TextOf(o, "metadata", "annotations", names.AnnotationCycle))
		m.Number = int32(compose.NumberOf(o, 0, "spec", "forProvider", "number")) //nolint:gosec // The API server keeps it in an int32.
	}
	f.remembered = runs.Recall(m)
	if report.Number == f.remembered.Run && report.Number > 0 {
		f.report = &report
	}
	f.adopt(r.Required[requiredJob])
	return f, nil
}

// ours reports whether an object belongs to this Training: another client may have made a Job of that name.
func (f *facts) ours(o compose.Object) bool {
	return compose.TextOf(o, "metadata", "labels", names.LabelTraining) == f.Name
}

// adopt the Job of the active run when Crossplane has lost its references, as when a tool replaces the Training. Desired as it is, Crossplane
// refers to it again.
func (f *facts) adopt(o compose.Object) {
	run := f.remembered.Run
	j, exists := f.jobs[run]
	if f.remembered.State != runs.Active || !exists || j.Deleting || f.referenced(run) {
		return
	}
	j.Unreferenced = true
	f.jobs[run], f.adopted = j, run
	f.Observed = maps.Clone(f.Observed)
	if f.Observed == nil {
		f.Observed = map[string]compose.Object{}
	}
	f.Observed[names.Job(run)] = o
}

// referenced reports whether Crossplane refers to the Job of a run.
func (f *facts) referenced(run int32) bool {
	return run != f.adopted && f.Observed[names.Job(run)] != nil
}

// job as observed.
func job(o compose.Object) runs.Job {
	m, kube := o.Map(), jobpod.Observe(o)
	return runs.Job{
		Revision:  compose.Text(m, "metadata", "annotations", names.AnnotationRevision),
		Rerun:     compose.Text(m, "metadata", "annotations", names.AnnotationRerun),
		Cycle:     whole(compose.Text(m, "metadata", "annotations", names.AnnotationCycle)),
		Created:   kube.Created,
		Started:   jobpod.Moment(compose.Text(m, "status", "startTime")),
		Deleting:  kube.Deleting,
		Suspended: kube.Suspended,
		Ready:     int(compose.Number(m, 0, "status", "ready")),
		Size:      int(compose.Number(m, 0, "spec", "parallelism")),
		Complete:  kube.Complete, Failed: kube.Failed, Reason: kube.Reason, Message: kube.Message,
	}
}

// whole positive number of a text, or 0.
func whole(text string) int32 { return names.RunOf("", text) }

// accepted reports whether the spec can be carried out.
func (f *facts) accepted() bool { return len(f.problems) == 0 }

// available reports whether an optional kind is composed: the cluster serves it, or an object of it exists.
func (f *facts) available(gvk schema.GroupVersionKind, resource string) bool {
	return f.Kinds[gvk] == compose.Available || f.Observed[resource] != nil
}

// decide about the runs.
func (f *facts) decide() runs.Decision {
	return runs.Decide(runs.Facts{
		Now: f.Now, Name: f.Namespace + "/" + f.Name, Ledger: f.remembered, Jobs: f.jobs,
		Unknown: len(f.jobs) == 0 && !f.Sought[requiredJob] && f.remembered.Run > 0,
		Report:  f.report, Accepted: f.accepted(), Revision: f.revision,
		Suspend: f.spec.Suspend, Rerun: f.rerun(), Schedule: f.schedule, Workers: deref(f.spec.Workers), Spares: int(deref(f.spec.Spares)), Runs: f.allowedRuns(),
		StartWithin: duration(f.spec.StartWithin), Grace: duration(f.spec.GracePeriod),
	})
}

func (f *facts) rerun() string {
	if f.spec.Rerun == nil {
		return ""
	}
	return f.spec.Rerun.ID
}

func (f *facts) allowedRuns() int32 {
	if f.spec.Retry == nil {
		return usualRuns
	}
	return deref(f.spec.Retry.Runs)
}
