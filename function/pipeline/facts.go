// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
	"github.com/capstan-dev/capstan/function/pipeline/validation"
	"github.com/capstan-dev/capstan/function/podspec"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
)

// requiredJob begins the names that Jobs are required under.
const requiredJob = "job-"

// facts are everything that a plan is made of: the request, decoded once. Nothing changes them after gather.
type facts struct {
	compose.Request
	names.Names

	// spec with all its defaults, and the revision of what reaches the pods of a stream.
	spec     v1alpha1.PipelineSpec
	revision string

	// problems of the spec. As long as there are any, what runs is not changed.
	problems []check.Problem

	// remembered of the runs, Jobs that Capstan made by their names, and what is reported about all runs.
	remembered runs.Ledger
	jobs       map[string]runs.Job
	gone       map[string]bool
	adopted    map[string]bool
	report     *observev1alpha1.JobHistoryObservation

	// nextRun of the schedule, or nil.
	nextRun *time.Time
}

// gather the facts of a request. It errs only for a composite resource that has no name or namespace.
func gather(r compose.Request) (*facts, error) {
	xr := r.Composite.Map()
	f := &facts{
		Request: r,
		Names:   names.Names{Name: compose.Text(xr, "metadata", "name"), Namespace: compose.Text(xr, "metadata", "namespace")},
		jobs:    map[string]runs.Job{}, gone: map[string]bool{}, adopted: map[string]bool{},
	}
	if f.Name == "" || f.Namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	f.Now = r.Now.UTC().Truncate(time.Second)
	f.spec, f.revision, f.problems = read(r)
	if len(f.problems) == 0 {
		f.problems = check.Errors(podvalidation.Devices(field.NewPath("spec", "resources"), f.spec.Resources, f.Kinds[podspec.ClaimTemplateGVK]))
	}
	for resource, o := range r.Observed {
		if name, ok := strings.CutPrefix(resource, names.JobPrefix); ok {
			f.jobs[name] = job(o)
		}
	}
	texts := []string{compose.Text(xr, "status", "ledger")}
	if o := r.Observed[names.Service]; o != nil {
		texts = append(texts, compose.TextOf(o, "metadata", "annotations", names.AnnotationLedger))
	}
	f.remembered = runs.Recall(texts, f.jobs)
	f.seek()
	report, _ := observed.Status[observev1alpha1.JobHistoryObservation](r.Observed[names.History])
	if report.Pipeline == f.Name {
		f.report = &report
	}
	if s := f.spec.Schedule; len(f.problems) == 0 && s != nil && !f.spec.Suspend {
		if schedule, zone, err := validation.Schedule(*s); err == nil {
			next := schedule.Next(f.Now.In(zone)).UTC()
			f.nextRun = &next
		}
	}
	return f, nil
}

// seek what is not observed of the Jobs of runs that are remembered: they end, or Crossplane has lost its reference to them, as when a tool
// replaces the Pipeline. One that is desired as it is gets its reference back.
func (f *facts) seek() {
	for _, r := range f.remembered.Runs {
		name := requiredJob + r.Job
		if f.Observed[jobResource(r.Job)] != nil || !f.Sought[name] {
			continue
		}
		o := f.Required[name]
		if o == nil || compose.TextOf(o, "metadata", "labels", names.LabelPipeline) != f.Name {
			f.gone[r.Job] = true
			continue
		}
		j := job(o)
		f.jobs[r.Job] = j
		if r.State != runs.Active || j.Deleting {
			continue
		}
		f.adopted[r.Job] = true
		f.Observed = maps.Clone(f.Observed)
		if f.Observed == nil {
			f.Observed = map[string]compose.Object{}
		}
		f.Observed[jobResource(r.Job)] = o
	}
}

// referenced reports whether Crossplane refers to a Job.
func (f *facts) referenced(job string) bool {
	return f.Observed[jobResource(job)] != nil && !f.adopted[job]
}

// job as observed.
func job(o compose.Object) runs.Job {
	m, kube := o.Map(), jobpod.Observe(o)
	kind, of, _ := strings.Cut(compose.Text(m, "metadata", "annotations", names.AnnotationReason), "/")
	j := runs.Job{
		ID:        compose.Text(m, "metadata", "labels", names.LabelRun),
		Kind:      runs.Kind(kind),
		Of:        runs.Kind(of),
		Revision:  compose.Text(m, "metadata", "annotations", names.AnnotationRevision),
		Created:   kube.Created,
		Deleting:  kube.Deleting,
		Suspended: kube.Suspended,
		Complete:  kube.Complete, Failed: kube.Failed, Reason: kube.Reason, Message: kube.Message,
	}
	if n, err := strconv.ParseInt(j.ID, 10, 32); err == nil && j.Kind == runs.Stream && n > 0 {
		j.Start = int32(n)
	}
	return j
}

// accepted reports whether the spec can be carried out.
func (f *facts) accepted() bool { return len(f.problems) == 0 }

// isStream reports whether the Pipeline has no end.
func (f *facts) isStream() bool { return f.spec.Schedule == nil && f.spec.Run == nil }

// available reports whether an optional kind is composed: the cluster serves it, or an object of it exists.
func (f *facts) available(gvk schema.GroupVersionKind, resource string) bool {
	return f.Kinds[gvk] == compose.Available || f.Observed[resource] != nil
}

// decide about the runs.
func (f *facts) decide() runs.Decision {
	in := runs.Facts{
		Now: f.Now, Ledger: f.remembered, Jobs: f.jobs, Gone: f.gone, Accepted: f.accepted(), Run: f.Run, Next: f.Stream, History: usualHistory,
	}
	if f.report != nil {
		in.Report = f.report.Jobs
	}
	if !f.accepted() {
		return runs.Decide(in)
	}
	in.Revision, in.Stream, in.Suspend, in.History = f.revision, f.isStream(), f.spec.Suspend, int(*f.spec.History)
	in.Forbid, in.Replace = f.spec.Concurrency == v1alpha1.PipelineForbid, f.spec.Concurrency == v1alpha1.PipelineReplace
	if f.spec.Run != nil {
		in.RunID = f.spec.Run.ID
	}
	in.Memory = f.spec.Resources.Memory.Value()
	if rule, ok := pods.Raise(f.spec.Retry); ok {
		in.Raise = runs.Raise{Factor: usualFactor, Attempts: usualRaises}
		if rule.Factor != nil {
			in.Raise.Factor = *rule.Factor
		}
		if rule.Attempts != nil {
			in.Raise.Attempts = int(*rule.Attempts)
		}
		if rule.Max != nil {
			in.Raise.Max = rule.Max.Value()
		}
	}
	return runs.Decide(in)
}
