// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/algorithm/validation"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/podspec"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	"github.com/capstan-dev/capstan/function/signals"
)

// facts are everything that a plan is made of: the request, decoded once. Nothing changes them after gather.
type facts struct {
	compose.Request
	names.Names

	// spec with its defaults, written as the user wrote it, without the platform's settings.
	spec, written v1alpha1.AlgorithmSpec

	// problems of the spec. As long as there are any, nothing is changed.
	problems []check.Problem

	// analysis that is observed, observes whether there is one or can be, and what it reports of the load that a replica bears,
	// of the latency to record, of the error budget, and of the checks of the live slot.
	analysis observed.Analysis
	observes bool
	learned  observev1alpha1.ScalingObservation
	latency  []observev1alpha1.SlotExpression
	slo      observev1alpha1.SLOObservation
	metrics  []measure.Metric

	// foreign series that the analysis reports, although the provider makes none of that name, or "".
	foreign string

	// autoscaler of the live slot.
	autoscaler observed.Autoscaler

	// signals from outside that are in force, and the runs of hooks that they ask for: as the status has them, and as they are now.
	signals            signals.Set
	toldRuns, hookRuns signals.Runs

	// rollout is what decisions about revisions are made by, as far as it is known before the target is.
	rollout rollout.Facts

	// experiments that are required to know them.
	experiments map[string]compose.Requirement

	// live slot of the remembered ledger, as observed.
	live rollout.Slot

	// mark of whether it sleeps, as remembered.
	mark sleep.Mark
}

// gather the facts of a request. It errs only for a composite resource that has no name or namespace.
func gather(r compose.Request) (*facts, error) {
	xr := r.Composite.Map()
	f := &facts{
		Request:  r,
		Names:    names.Names{Name: compose.Text(xr, "metadata", "name"), Namespace: compose.Text(xr, "metadata", "namespace")},
		analysis: observed.NewAnalysis(r.Observed[names.Analysis]),
	}
	if f.Name == "" || f.Namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	f.observes = f.analysis.Exists || r.Kinds[observev1alpha1.AnalysisGroupVersionKind] == compose.Available
	f.rollout = f.remembered()
	f.mark, _ = observedSleep(r.Observed[names.Service])
	f.live = f.rollout.Slots[f.rollout.Ledger.Slot]
	f.autoscaler = f.scaler(f.rollout.Ledger.Slot)
	f.written, f.spec, f.problems = read(r)
	f.signals, f.toldRuns = signals.InForce(f.analysis.Signals(), f.Now), signals.Remembered(xr)
	if m, claim := f.spec.Model, f.Observed[names.ModelCache]; m != nil && len(f.problems) == 0 && claim != nil {
		f.problems = check.Errors(validation.Claim(m.Cache, f.CacheClaim(), claim.Map()))
	}
	if len(f.problems) == 0 {
		f.problems = check.Errors(podvalidation.Devices(field.NewPath("spec", "resources"), f.spec.Resources, f.Kinds[podspec.ClaimTemplateGVK]))
	}
	compared := f.rollout
	if len(f.problems) == 0 {
		compared, f.problems = f.compares(f.rollout)
	}
	if len(f.problems) > 0 {
		f.rollout.Evidence = measure.AllEvidence(f.analysis, f.rollout.Ledger, f.rollout.Uneven(), driftReports(xr))
		return f, nil
	}
	f.hookRuns = f.signals.Hooks(f.toldRuns, f.hookFacts(), f.Now)
	f.spec.Scaling = atLeast(f.spec.Scaling, f.signals.MinReplicas())
	f.spec.Metrics = measure.WithDistribution(f.spec.Metrics, f.analysis.Distribution())
	f.learned = f.analysis.Scaling()
	if f.spec.SLO != nil {
		f.slo = f.analysis.SLO()
	}
	if measure.RecordsLatency(&f.spec) {
		f.latency = f.analysis.Latency()
	}
	f.foreign = measure.ForeignSeries(slices.Concat(f.learned.Expressions, f.latency), f.slo)
	f.metrics = measure.Metrics(&f.spec, f.analysis, f.rollout.Ledger.Slot)
	f.rollout = f.requested(compared)
	return f, nil
}

// driftReports reports whether drift of a candidate is only reported, also where the spec cannot be carried out.
func driftReports(xr map[string]any) bool {
	rolls, set := compose.Map(xr, "spec", "lifecycle")["rollbackOnDrift"].(bool)
	return set && !rolls
}

// remembered facts about revisions: what is observed and what the ledger says. They do not depend on the spec.
func (f *facts) remembered() rollout.Facts {
	xr, service, route := f.Composite.Map(), f.Observed[names.Service], f.observedRoute()
	r := rollout.Facts{
		Now: f.Now, Name: f.Name, Observes: f.observes,
		Route:         observed.NewHTTPRoute(route),
		LastCandidate: compose.Text(xr, "status", "revision", "candidate"),
	}
	_, r.Selects = observedSleep(service)
	findings := f.analysis.Findings()
	r.Slots = map[string]rollout.Slot{
		names.SlotA: f.slot(names.SlotA, r.Route, findings),
		names.SlotB: f.slot(names.SlotB, r.Route, findings),
	}
	r.Ledger = rollout.Recall(r, rollout.Memory{
		Ledgers: []string{ledgerText(service), ledgerText(route), compose.Text(xr, "status", "rollout", "ledger")},
		Slot:    compose.Text(xr, "status", "revision", "slot"),
		Live:    compose.Text(xr, "status", "revision", "live"),
		Epoch:   f.analysis.Epoch(),
	})
	return r
}

// requested facts beside the remembered ones: what the spec says about revisions.
func (f *facts) requested(r rollout.Facts) rollout.Facts {
	spec := &f.spec
	r.Shown = shown(f.Composite.Map())
	r.Lifecycle, r.Scaling, r.Replicas = spec.Lifecycle, spec.Scaling,
		replicas(spec, r, compose.Number(f.Composite.Map(), 0, "status", "replicas"))
	if spec.Rollout != nil {
		r.Requests = *spec.Rollout
	}
	r.Held, r.Aborted = f.signals.Hold(), f.signals.Aborted()
	r.Startup = time.Duration(*spec.Probes.StartupSeconds) * time.Second
	r.Drain = time.Duration(*spec.Availability.DrainSeconds) * time.Second
	r.MaxUnavailable = *spec.Availability.MaxUnavailable
	r.HasRoute = spec.Route != nil
	r.ByReplicas = spec.Route == nil || f.Kinds[f.routeKind().gvk] == compose.Unavailable && f.Observed[f.routeKind().resource] == nil
	r.Gateway = f.gateway()
	r.BudgetExhausted = measure.BudgetExhausted(spec.SLO, f.slo.BudgetRemainingPercent)
	if spec.Metrics != nil {
		r.Interval = spec.Metrics.Interval()
	}
	if spec.Lifecycle != nil {
		r.Hooks, r.SendsHooks = f.hooksSeen(r.Ledger), f.sendsHooks()
		r.Evidence = measure.Evidence(spec, r.Experiment, f.analysis, r.Ledger, f.Now, r.Uneven())
		r.Rehearsal = measure.Rehearsal(spec, r.Experiment, f.analysis, r.Ledger)
	}
	return r
}

// atLeast so many replicas, within the bounds of the scaling, or the scaling as it is.
func atLeast(s *v1alpha1.Scaling, n int32) *v1alpha1.Scaling {
	if s == nil || n <= s.MinReplicas {
		return s
	}
	raised := *s
	raised.MinReplicas = min(n, s.MaxReplicas)
	return &raised
}

// shown evidence of the status.
func shown(xr map[string]any) []v1alpha1.EvidenceStatus {
	var st struct {
		Evidence []v1alpha1.EvidenceStatus `json:"evidence"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(compose.Map(xr, "status", "rollout"), &st); err != nil {
		return nil
	}
	return st.Evidence
}

// replicas that the spec asks for. Without a number in the spec the present one stays, such as the number that an autoscaler left.
// While requests go back, the revision that they leave has it: the one that takes them back may have kept only some. The status
// has the number of a Deployment that was deleted.
func replicas(spec *v1alpha1.AlgorithmSpec, r rollout.Facts, reported int64) int32 {
	if spec.Replicas != nil {
		return *spec.Replicas
	}
	live, size := r.Slots[r.Ledger.Slot], reported
	if live.Exists {
		size = live.Size
	}
	if r.Ledger.Phase == v1alpha1.RolloutRollingBack {
		size = max(size, r.Slots[names.Other(r.Ledger.Slot)].Size)
	}
	return int32(max(size, 1)) //nolint:gosec // The API server keeps it in an int32.
}

// ledgerText that an observed object holds, or empty.
func ledgerText(o compose.Object) string {
	if o == nil {
		return ""
	}
	return compose.TextOf(o, "metadata", "annotations", names.AnnotationLedger)
}

// slot as observed.
func (f *facts) slot(slot string, route observed.HTTPRoute, findings []observev1alpha1.Finding) rollout.Slot {
	o := f.Observed[names.Deployment(slot)]
	if isIdle(o) {
		o = nil
	}
	s := rollout.Slot{Deployment: observed.NewDeployment(o), HasService: f.Observed[names.SlotService(slot)] != nil}
	if o != nil {
		s.Revision = compose.TextOf(o, "metadata", "annotations", names.AnnotationRevision)
		s.Served = f.Observed[names.RevisionPrefix+s.Revision] != nil
	}
	s.Needs = f.scaler(slot).Needs(s.Deployment)
	service := f.ServiceOf(slot)
	weight, named := route.Weights[service]
	s.Routed.Weight, s.Routed.Named, s.Routed.Chosen = weight, named, route.Chosen[service]
	s.Routed.Mirrored = route.Mirror == service
	found := trouble(slot, s, findings)
	s.Trouble, s.TroubleMessage, s.TroubleCause, s.TroubleExtent = xpv2.ConditionReason(found.Reason), found.Message, found.Cause, found.Extent
	if found.Since != nil {
		s.TroubleSince = found.Since.Time
	}
	return s
}

// isIdle reports whether a Deployment is only kept for the next revision of its slot: one without a revision.
// The annotation alone is not enough, because it stays with the next revision where another manager owns it as well.
func isIdle(o compose.Object) bool {
	return o != nil && compose.TextOf(o, "metadata", "annotations", names.AnnotationIdle) != "" &&
		compose.TextOf(o, "metadata", "annotations", names.AnnotationRevision) == ""
}

// trouble that keeps the pods of a slot from serving, as a finding. While every pod serves there is none, and earlier
// findings do not count.
func trouble(slot string, s rollout.Slot, findings []observev1alpha1.Finding) observev1alpha1.Finding {
	refusal := withoutPod(s.Refusal)
	switch {
	case s.Complete():
		return observev1alpha1.Finding{}
	case strings.Contains(refusal, "exceeded quota"):
		return observev1alpha1.Finding{
			Reason:  string(v1alpha1.ReasonQuotaExceeded),
			Message: refusal + ": raise the quota of the namespace, or lower spec.replicas or spec.resources",
		}
	case refusal != "":
		return observev1alpha1.Finding{
			Reason:  string(v1alpha1.ReasonPodsRefused),
			Message: refusal + ": satisfy what refuses the pods, or correct the field of the spec that it names",
		}
	}
	for _, found := range findings {
		// Findings may be about earlier pods for a while after others have their slot.
		earlier := found.Revision != "" && s.Exists && found.Revision != s.Revision
		if (found.Slot == "" || found.Slot == slot) && !earlier && found.Reason != "" {
			return found
		}
	}
	return observev1alpha1.Finding{}
}

// usedOfQuota is the part of a refusal by a quota that says what is used, which changes without us:
//
//	exceeded quota: q, requested: cpu=2, used: cpu=9, limited: cpu=10
var usedOfQuota = regexp.MustCompile(`used: .*?, limited:`)

// withoutPod is a refusal without the name of the pod, which is another one at every try:
//
//	pods "reco-a-7d9f8-x2b4c" is forbidden: exceeded quota: …
func withoutPod(refusal string) string {
	refusal = usedOfQuota.ReplaceAllString(refusal, "limited:")
	before, rest, ok := strings.Cut(refusal, `pods "`)
	if !ok {
		return refusal
	}
	if _, after, ok := strings.Cut(rest, `"`); ok {
		return before + "every pod" + after
	}
	return refusal
}

// accepted reports whether the spec can be carried out.
func (f *facts) accepted() bool { return len(f.problems) == 0 }

// measures reports whether anything that the spec asks for needs metrics of the pods.
func (f *facts) measures() bool { return f.spec.Metrics != nil }

// gateway that the route is for.
func (f *facts) gateway() v1alpha1.GatewayReference {
	if f.spec.Route == nil || f.spec.Route.Gateway == nil {
		return v1alpha1.GatewayReference{}
	}
	g := *f.spec.Route.Gateway
	if g.Namespace == "" {
		g.Namespace = f.Namespace
	}
	return g
}

// available reports whether an optional kind is composed: the cluster serves it, or an object of it exists.
func (f *facts) available(gvk schema.GroupVersionKind, resource string) bool {
	return f.Kinds[gvk] == compose.Available || f.Observed[resource] != nil
}

// needed is the number of pods that have to serve. While a spec cannot be carried out, they are those that there are.
func (f *facts) needed() int64 {
	switch {
	case f.resting():
		return 0
	case f.accepted():
		return f.rollout.Needed()
	case f.autoscaler.Exists:
		return f.autoscaler.MinReplicas()
	default:
		return f.live.Size
	}
}

// serving reports whether enough pods serve requests.
func (f *facts) serving() bool { return f.live.Exists && f.live.Available >= f.needed() }

// stopped reports whether no pods are desired.
func (f *facts) stopped() bool { return f.live.Exists && f.needed() == 0 && !f.resting() }

// resting reports whether the Algorithm is asleep, or wakes without trouble. It is as ready then as with pods that serve: no
// request fails.
func (f *facts) resting() bool {
	return f.mark.Down() && f.well()
}

// well reports whether nothing blocks the pods that requests reach, as far as there are any.
func (f *facts) well() bool { return f.live.Exists && f.live.Trouble == "" && !f.live.Stalled }

// unblocked reports whether pods serve and those that are missing are on their way, as after a change of size. What was well
// until then stays well: the phase shows the progress.
func (f *facts) unblocked() bool {
	return f.live.Available > 0 && f.live.Trouble == "" && !f.live.Stalled
}
