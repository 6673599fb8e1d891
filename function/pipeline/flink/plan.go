// SPDX-License-Identifier: Apache-2.0

// Package flink plans a Pipeline with the engine Flink: one pod with a JobManager and pods with TaskManagers, in revisions. It is pure. Values
// go in one direction: facts, the decision about revisions (package revisions), objects, and the report. Start reading in this file.
package flink

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/pipeline/flink/revisions"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// facts are everything that a plan is made of. Nothing changes them after gather.
type facts struct {
	compose.Request
	names.Names

	// spec as it is written, with the defaults of the schema, its hash, and its problems. As long as there are any, what runs is not
	// changed.
	spec     v1alpha1.PipelineSpec
	hash     string
	problems []check.Problem

	// stable spec that ran well last, or nil, and its hash.
	stable     *v1alpha1.PipelineSpec
	stableHash string

	remembered revisions.Ledger
	report     *observev1alpha1.FlinkJobObservation
}

// A pass is the facts with what is decided by them.
type pass struct {
	*facts

	ledger    revisions.Ledger
	deadlines []time.Time
	// runs is the spec of the present revision, with all its defaults.
	runs  v1alpha1.PipelineSpec
	phase v1alpha1.PipelinePhase
}

// Plan a Pipeline with the engine Flink, whose spec has the defaults of the schema and was found to have some problems. It errs only for a
// composite resource that has no name or namespace; every mistake that a user can make becomes a condition.
func Plan(r compose.Request, spec v1alpha1.PipelineSpec, problems []check.Problem) (*compose.Plan, error) {
	f, err := gather(r, spec, problems)
	if err != nil {
		return nil, err
	}
	p := &pass{facts: f}
	p.ledger, p.deadlines = f.decide()
	p.runs = defaulted(f.running(p.ledger), f.Settings.Algorithm)
	p.phase = p.phaseNow()
	d := compose.NewDraft(f.Request, nil)
	if p.accepted() {
		if err := objects(d, p); err != nil {
			return nil, fmt.Errorf("cannot compose the stream: %w", err)
		}
	} else {
		d.KeepRest()
	}
	plan := &compose.Plan{
		Objects:    d.Objects(),
		Ready:      p.phase == v1alpha1.PipelineRunning && p.silent() == "" && d.Complete() || p.phase == v1alpha1.PipelineSucceeded,
		Status:     p.status(d),
		Conditions: p.conditions(d),
		TTL:        p.ttl(d),
	}
	d.Settle(plan, false)
	return plan, nil
}

func gather(r compose.Request, spec v1alpha1.PipelineSpec, problems []check.Problem) (*facts, error) {
	xr := r.Composite.Map()
	f := &facts{
		Request: r, spec: spec, problems: problems,
		Names: names.Names{Name: compose.Text(xr, "metadata", "name"), Namespace: compose.Text(xr, "metadata", "namespace")},
	}
	if f.Name == "" || f.Namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	f.Now = r.Now.UTC().Truncate(time.Second)
	if f.accepted() {
		f.problems = Problems(spec)
	}
	if f.accepted() {
		hash, err := Hash(spec)
		if err != nil {
			f.problems = []check.Problem{check.Invalid("spec", fmt.Sprint(err), "cannot be read: correct it")}
		}
		f.hash = hash
	}
	if o := r.Observed[names.Stable]; o != nil {
		var s v1alpha1.PipelineSpec
		if json.Unmarshal([]byte(compose.TextOf(o, "data", names.SpecKey)), &s) == nil && s.Flink != nil {
			f.stable, f.stableHash = &s, compose.TextOf(o, "metadata", "annotations", names.AnnotationRevision)
		}
	}
	ledgers := []string{compose.Text(xr, "status", "ledger")}
	if o := r.Observed[names.Service]; o != nil {
		ledgers = append(ledgers, compose.TextOf(o, "metadata", "annotations", names.AnnotationLedger))
	}
	f.remembered = revisions.Recall(ledgers...)
	if o := r.Observed[names.Job]; o != nil {
		if report, ok := observed.Status[observev1alpha1.FlinkJobObservation](o); ok {
			f.report = &report
		}
	}
	return f, nil
}

func (f *facts) accepted() bool { return len(f.problems) == 0 }

// decide which revision runs.
func (f *facts) decide() (revisions.Ledger, []time.Time) {
	facts := revisions.Facts{
		Now: f.Now, Ledger: f.remembered, Hash: f.hash, Accepted: f.accepted(), Suspend: f.spec.Suspend,
		Stable: f.stableHash, Report: f.report,
	}
	facts.Floor, facts.Ignored = f.floor()
	if fl := f.spec.Flink; fl != nil {
		facts.Within, facts.Before = duration(fl.StableWithin), duration(fl.SavepointWithin)
	}
	return revisions.Decide(facts)
}

// floor is the highest number of a revision that an object has, and what the pods of it ignore.
func (f *facts) floor() (highest int32, ignored []int32) {
	if f.report != nil {
		highest = f.report.Revision
	}
	for _, resource := range []string{names.TaskManagers, names.JobManager} {
		o := f.Observed[resource]
		if o == nil {
			continue
		}
		p, err := flink.ParsePlan([]byte(compose.TextOf(o, "spec", "template", "metadata", "annotations", names.AnnotationPlan)))
		if err != nil || p.Revision < int(highest) || p.Revision > maxRevision {
			continue
		}
		highest, ignored = int32(p.Revision), nil //nolint:gosec // It is bounded.
		for _, r := range p.Ignored {
			ignored = append(ignored, int32(r)) //nolint:gosec // It is less than the revision.
		}
	}
	return highest, ignored
}

// maxRevision is the highest number that is believed.
const maxRevision = 1 << 30

// running is the spec of the present revision: that which is written, or the stable one after a revision was rolled back.
func (f *facts) running(l revisions.Ledger) v1alpha1.PipelineSpec {
	if l.Failed == nil || f.stable == nil || l.Hash != f.stableHash {
		return f.spec
	}
	s := *f.stable.DeepCopy()
	// What reaches no pod is as it is written.
	s.Suspend = f.spec.Suspend
	if f.spec.Flink == nil {
		return s
	}
	s.Flink.TaskManagers, s.Flink.Scaling, s.Flink.StableWithin = f.spec.Flink.TaskManagers, f.spec.Flink.Scaling, f.spec.Flink.StableWithin
	return s
}

// Problems of a spec that the schema cannot see.
func Problems(spec v1alpha1.PipelineSpec) []check.Problem {
	if spec.Flink == nil {
		return nil
	}
	var found []check.Problem
	for _, key := range compose.SortedKeys(spec.Flink.Conf) {
		if flink.Reserved(key) {
			found = append(found, check.Invalid("spec.flink.conf", key, "is set by Capstan, so that state is found again: remove it"))
		}
	}
	if s := spec.Flink.Scaling; s != nil && s.Max < deref(spec.Flink.TaskManagers) {
		found = append(found, check.Invalid("spec.flink.scaling.max", strconv.Itoa(int(s.Max)), "is less than spec.flink.taskManagers: raise it, or lower that"))
	}
	return found
}

// managed fields of a spec do not reach the pods.
var managed = []string{
	"suspend", "concurrency", "retry", "deadline", "gracePeriod", "keepFinishedFor", "history", "queue", "schedule", "run", "lineage", "metrics",
	"flink.taskManagers", "flink.scaling", "flink.stableWithin",
}

var theDefinition = definition.Once(apis.Pipeline)

// usual values of fields mean the same as none, so that a field that comes with a later version begins no revision.
var usual = sync.OnceValue(func() map[string]any { return theDefinition().Fields() })

// Hash of everything of a spec that reaches the pods.
func Hash(written v1alpha1.PipelineSpec) (string, error) {
	s := *written.DeepCopy()
	jobpod.Uniform(s.Secrets, s.Resources, s.Flink.TaskManagerResources)
	in := jobpod.PodInputs{Managed: managed, Usual: usual(), Claim: []string{"flink", "state", "claim"}}
	return in.Revision(s) //nolint:wrapcheck // The caller says what it was for.
}

// defaultMemory of the two roles: what Flink's own defaults add up to, in whole pods.
var (
	defaultJobManager  = resource.MustParse("1600Mi")
	defaultTaskManager = resource.MustParse("1728Mi")
)

// defaulted spec: what depends on other fields or on the platform's settings. The schema has the other defaults.
func defaulted(s v1alpha1.PipelineSpec, settings inputv1alpha1.AlgorithmSettings) v1alpha1.PipelineSpec {
	s = *s.DeepCopy()
	if s.Flink == nil {
		return s
	}
	if s.Flink.TaskManagerResources == nil {
		s.Flink.TaskManagerResources = s.Resources.DeepCopy()
	}
	fill := func(r **v1alpha1.Resources, memory resource.Quantity) {
		if *r == nil {
			*r = &v1alpha1.Resources{}
		}
		if (*r).CPU == nil {
			(*r).CPU = settings.CPU
		}
		if (*r).Memory == nil {
			(*r).Memory = &memory
		}
		if (*r).GPU != "" && (*r).GPUCount == nil {
			(*r).GPUCount = new(int32(1))
		}
	}
	fill(&s.Resources, defaultJobManager)
	fill(&s.Flink.TaskManagerResources, defaultTaskManager)
	if s.Pod == nil {
		s.Pod = &v1alpha1.JobPod{}
	}
	if s.Pod.SecurityContext == nil {
		s.Pod.SecurityContext = &v1alpha1.PodSecurity{}
	}
	if s.Flink.TaskManagers == nil {
		s.Flink.TaskManagers = new(int32(1))
	}
	if s.Flink.Slots == nil {
		s.Flink.Slots = new(int32(1))
	}
	return s
}

// ttl by what the stream waits for.
func (p *pass) ttl(d *compose.Draft) time.Duration {
	pace := compose.Settled
	switch p.phase {
	case v1alpha1.PipelineRunning, v1alpha1.PipelineSuspended, v1alpha1.PipelineSucceeded:
	default:
		pace = compose.Waiting
	}
	if compose.Unheard(p.Request) {
		pace = compose.Following
	}
	if d.Waits() {
		pace = compose.Asking
	}
	deadlines := d.Deadlines()
	for _, at := range p.deadlines {
		if at.After(p.Now) {
			deadlines = append(deadlines, at)
		}
	}
	return pace.TTL(p.Now, deadlines...)
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func deref[T any](v *T) T {
	var zero T
	if v == nil {
		return zero
	}
	return *v
}
