// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
	"github.com/capstan-dev/capstan/function/podspec"
)

// objects of an accepted spec.
func objects(d *compose.Draft, p *pass) error {
	service(d, p)
	serviceAccount(d, p)
	networkPolicy(d, p)
	history(d, p)
	p.lineage().Compose(d, p.lineageRuns())
	monitor(d, p)
	mounted(d, p)
	if err := cronJob(d, p); err != nil {
		return err
	}
	return jobs(d, p)
}

// service by which the pods of a run find each other before they are ready. It also keeps what is remembered of the runs.
func service(d *compose.Draft, p *pass) {
	d.Require(names.Service, applycorev1.Service(p.Shared(), p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(p.NoteSettings(map[string]string{names.AnnotationLedger: p.ledger.Text()})).
		WithSpec(applycorev1.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true).
			WithSelector(p.Pods()).
			WithPorts(applycorev1.ServicePort().WithName(jobpod.PortState).WithProtocol(corev1.ProtocolTCP).
				WithPort(runner.StatePort).WithTargetPort(intstr.FromString(jobpod.PortState)))))
}

// serviceAccount without rights and without a token.
func serviceAccount(d *compose.Draft, p *pass) {
	if p.spec.Pod.ServiceAccountName == "" {
		d.Require(names.ServiceAccount, applycorev1.ServiceAccount(p.Shared(), p.Namespace).
			WithLabels(p.Labels()).
			WithAutomountServiceAccountToken(false))
	} else if p.active() {
		d.Keep(names.ServiceAccount) // Pods of a run that is active may still begin with it.
	}
}

// networkPolicy lets pods of an engine with several pods reach each other on every port. The provider reaches the port of the state, what scrapes
// the program's own metrics, and nothing else reaches anything. What pods may call stays open.
func networkPolicy(d *compose.Draft, p *pass) {
	state := intstr.FromString(jobpod.PortState)
	rules := []*compose.IngressRule{compose.Ingress(state, compose.PodsOf([]string{p.Settings.Database.CrossplaneNamespace})...)}
	if p.spec.Engine != v1alpha1.PipelineContainer {
		rules = append(rules, applynetworkingv1.NetworkPolicyIngressRule().WithFrom(compose.NewPeer("", p.Pods())))
	}
	if ns, m := p.Settings.Algorithm.MetricsNamespaces, p.spec.Metrics; m != nil && m.Port != nil && len(ns) > 0 {
		rules = append(rules, compose.Ingress(intstr.FromInt32(*m.Port), compose.PodsOf(ns)...))
	}
	d.Require(names.NetworkPolicy, applynetworkingv1.NetworkPolicy(p.Shared(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(p.Pods())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))
}

type historySpec struct {
	ForProvider observev1alpha1.JobHistoryParameters `json:"forProvider"`
}

// history observes all runs.
func history(d *compose.Draft, p *pass) {
	if !p.available(observev1alpha1.JobHistoryGroupVersionKind, names.History) {
		return
	}
	apiVersion, kind := observev1alpha1.JobHistoryGroupVersionKind.ToAPIVersionAndKind()
	d.Offer(names.History, compose.NewManifest(apiVersion, kind, p.Metadata(p.Shared()), historySpec{
		ForProvider: observev1alpha1.JobHistoryParameters{Pipeline: p.Name},
	}))
}

// active reports whether a run may be active: one of Capstan's, or a scheduled one by what the provider says.
func (p *pass) active() bool {
	if len(p.ledger.Runs) > 0 || p.spec.Schedule != nil && p.report == nil {
		return true
	}
	if p.report == nil {
		return false
	}
	for _, j := range p.report.Jobs {
		if j.Phase != runs.PhaseSucceeded && j.Phase != runs.PhaseFailed {
			return true
		}
	}
	return false
}

// soon is how long the provider may take to report a Job that Kubernetes made.
const soon = 2 * time.Minute

// schedules reports whether Kubernetes may make a Job by a plan of before, or has just made one, so that no report has it yet.
func (p *pass) schedules() bool {
	o := p.Observed[names.CronJob]
	if o == nil {
		return false
	}
	if last := jobpod.Moment(compose.TextOf(o, "status", "lastScheduleTime")); last != nil && p.Now.Before(last.Add(soon)) {
		return true
	}
	return compose.TextOf(o, "metadata", "annotations", names.AnnotationRevision) != p.revision
}

// mounted objects are immutable and named by their content. Those that an active run may have mounted stay: its pod may start again.
func mounted(d *compose.Draft, p *pass) {
	if c := p.spec.Config; c != nil {
		hash := podspec.ConfigHash(c)
		d.Require(names.ConfigPrefix+hash, podspec.ConfigMap(p.Config(hash), p.Namespace, p.Labels(), c))
	}
	if r := p.spec.Resources.DeviceRequest; r != nil {
		hash := podspec.DevicesHash(r)
		d.Require(names.ClaimPrefix+hash, podspec.ClaimTemplate(p.DeviceClaim(hash), p.Namespace, p.Labels(), r))
	}
	if !p.active() && !p.schedules() {
		return
	}
	for resource := range p.Observed {
		if (strings.HasPrefix(resource, names.ConfigPrefix) || strings.HasPrefix(resource, names.ClaimPrefix)) && !d.Has(resource) {
			d.Keep(resource)
		}
	}
}

// inputs of the pods of a run.
func (p *pass) inputs(run string) pods.Inputs {
	return pods.Inputs{
		Names: p.Names, Spec: p.spec, CompanionImage: p.Settings.Algorithm.CompanionImage, Run: run, Args: p.spec.Args, MemoryUnlimited: p.memoryUnlimited(),
	}
}

// memoryUnlimited reports whether the memory is only a request: beside a GPU, when the spec does not name it.
func (p *pass) memoryUnlimited() bool {
	written := compose.Map(p.Composite.Map(), "spec", "resources")
	return p.spec.Resources.Accelerated() && written["memory"] == nil
}

// untilSeen is how long the Job of a scheduled run stays at least: the provider would not see the end of one that Kubernetes deletes at once.
const untilSeen = time.Minute

// cronJob makes the Jobs of scheduled runs. It has all that they need, while Crossplane and Capstan are stopped, too.
func cronJob(d *compose.Draft, p *pass) error {
	s := p.spec.Schedule
	if s == nil {
		return nil
	}
	template, err := p.inputs("").JobSpec()
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	// Kubernetes makes no such Job again, as Crossplane would.
	template.WithTTLSecondsAfterFinished(int32(min(max(p.spec.KeepFinishedFor.Seconds(), untilSeen.Seconds()), 1<<31-1)))
	spec := applybatchv1.CronJobSpec().
		WithSchedule(s.Cron).
		WithTimeZone(s.TimeZone).
		WithConcurrencyPolicy(batchv1.ConcurrencyPolicy(p.spec.Concurrency)).
		WithSuspend(p.spec.Suspend).
		WithSuccessfulJobsHistoryLimit(*p.spec.History).
		WithFailedJobsHistoryLimit(*p.spec.History).
		WithJobTemplate(applybatchv1.JobTemplateSpec().
			WithLabels(p.Labels()).
			WithLabels(jobpod.QueueLabels(p.spec.Queue)).
			WithSpec(template))
	if s.StartWithin != nil {
		spec.WithStartingDeadlineSeconds(int64(jobpod.Seconds(s.StartWithin)))
	}
	d.Require(names.CronJob, applybatchv1.CronJob(p.Name, p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(map[string]string{names.AnnotationRevision: p.revision}).
		WithSpec(spec))
	return nil
}

// jobs of runs that are active, and of runs that have ended by themselves and are kept. A Job that exists stays as it was made: its
// template cannot change, and queues write into it.
func jobs(d *compose.Draft, p *pass) error {
	for job := range p.keepUntil() {
		d.Keep(jobResource(job))
	}
	for _, r := range p.ledger.Runs {
		switch resource := jobResource(r.Job); {
		case r.State != runs.Active:
		case p.Observed[resource] != nil:
			d.Keep(resource)
		case r.Seen: // It is sought, or ends.
		default:
			if err := runJob(d, p, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// runJob makes the Job of a run.
func runJob(d *compose.Draft, p *pass, r runs.Run) error {
	in := p.inputs(r.ID)
	in.Memory = r.Memory
	if cmp.Or(r.Of, r.Kind) == runs.Scheduled {
		in.Run = "" // The name of the Job has the time.
	}
	if q := p.spec.Run; q != nil && q.ID == r.ID && cmp.Or(r.Of, r.Kind) == runs.ByID && len(q.Args) > 0 {
		in.Args = q.Args
	}
	spec, err := in.JobSpec()
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	reason := string(r.Kind)
	if r.Of != "" {
		reason += "/" + string(r.Of)
	}
	d.Require(jobResource(r.Job), applybatchv1.Job(r.Job, p.Namespace).
		WithLabels(p.RunLabels(r.ID)).
		WithLabels(jobpod.QueueLabels(p.spec.Queue)).
		WithAnnotations(map[string]string{names.AnnotationRevision: r.Revision, names.AnnotationReason: reason}).
		WithSpec(spec))
	return nil
}
