// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/podspec"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/pods"
)

// objects of an accepted spec.
func objects(d *compose.Draft, p *pass) error {
	service(d, p)
	serviceAccount(d, p)
	networkPolicy(d, p)
	checkpoints(d, p)
	run(d, p)
	p.lineage().Compose(d, p.lineageRuns())
	monitor(d, p)
	if err := runObjects(d, p); err != nil {
		return err
	}
	registry(d, p)
	return nil
}

// service by which the members of a crew find each other before they are ready. It also keeps what is remembered of the runs.
func service(d *compose.Draft, p *pass) {
	d.Require(names.Service, applycorev1.Service(p.Crew(), p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(p.NoteSettings(map[string]string{names.AnnotationLedger: p.ledger.Text()})).
		WithSpec(applycorev1.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true).
			WithSelector(p.Pods()).
			WithPorts(
				servicePort("crew", crew.Port),
				servicePort(jobpod.PortState, crew.StatePort))))
}

func servicePort(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
	return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
}

// serviceAccount without rights and without a token.
func serviceAccount(d *compose.Draft, p *pass) {
	if p.spec.Pod.ServiceAccountName == "" {
		d.Require(names.ServiceAccount, applycorev1.ServiceAccount(p.Crew(), p.Namespace).
			WithLabels(p.Labels()).
			WithAutomountServiceAccountToken(false))
	}
}

// networkPolicy lets workers reach each other on every port, because collective communication chooses its ports by itself. The provider and
// what scrapes metrics reach the port of the state, what scrapes also the program's own metrics, and nothing else reaches anything. What pods may call stays open.
func networkPolicy(d *compose.Draft, p *pass) {
	crewmates := applynetworkingv1.NetworkPolicyIngressRule().WithFrom(compose.NewPeer("", p.Pods()))
	state := intstr.FromString(jobpod.PortState)
	rules := []*compose.IngressRule{crewmates, compose.Ingress(state, compose.PodsOf([]string{p.Settings.Database.CrossplaneNamespace})...)}
	if ns := p.Settings.Algorithm.MetricsNamespaces; len(ns) > 0 {
		rules = append(rules, compose.Ingress(state, compose.PodsOf(ns)...))
		if m := p.spec.Metrics; m != nil && m.Port != nil {
			rules = append(rules, compose.Ingress(intstr.FromInt32(*m.Port), compose.PodsOf(ns)...))
		}
	}
	d.Require(names.NetworkPolicy, applynetworkingv1.NetworkPolicy(p.Crew(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(p.Pods())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))
}

// checkpoints are the claim that the spec asks for. One that exists stays, also when the spec does not ask for it any more, and never
// shrinks.
func checkpoints(d *compose.Draft, p *pass) {
	c := p.spec.Checkpoint
	if c == nil || c.Claim == nil {
		d.Keep(names.Checkpoints)
		return
	}
	size := *c.Claim.Resources.Requests.Storage
	if o := p.Observed[names.Checkpoints]; o != nil {
		claimed, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "resources", "requests", "storage"))
		if err == nil && claimed.Cmp(size) > 0 {
			size = claimed
		}
	}
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(c.AccessMode()).
		WithResources(applycorev1.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if c.Claim.StorageClassName != "" {
		spec.WithStorageClassName(c.Claim.StorageClassName)
	}
	d.Require(names.Checkpoints, applycorev1.PersistentVolumeClaim(p.CheckpointClaim(), p.Namespace).WithLabels(p.Labels()).WithSpec(spec))
}

type runSpec struct {
	ForProvider observev1alpha1.RunParameters `json:"forProvider"`
}

// run observes the present or last run, and keeps notes of the ledger.
func run(d *compose.Draft, p *pass) {
	if p.ledger.Run == 0 || !p.available(observev1alpha1.RunGroupVersionKind, names.Run) {
		return
	}
	apiVersion, kind := observev1alpha1.RunGroupVersionKind.ToAPIVersionAndKind()
	d.Offer(names.Run, compose.NewManifest(apiVersion, kind, p.Metadata(p.Crew()).WithAnnotations(p.notes()), runSpec{
		ForProvider: observev1alpha1.RunParameters{Job: p.Job(p.ledger.Run), Number: p.ledger.Run},
	}))
}

// runObjects are the Job of the run and what its pods mount. A Job that exists stays as it was made: its template cannot change, and
// queues write into it.
func runObjects(d *compose.Draft, p *pass) error {
	if !p.desiresJob() {
		return nil
	}
	l, resource := p.ledger, names.Job(p.ledger.Run)
	in := pods.Inputs{
		Names: p.Names, Spec: p.spec, CompanionImage: p.Settings.Algorithm.CompanionImage, Run: l.Run, ResumeFrom: l.Resume,
		Cycle: l.Cycle, Former: l.Former,
		MemoryUnlimited: p.memoryUnlimited(),
	}
	if p.exists() {
		for name := range p.Observed {
			if mountedBy(name, l.Run) {
				d.Keep(name)
			}
		}
		d.Keep(resource)
		return nil
	}
	if p.over() {
		return nil
	}
	text, err := in.Plan()
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	hash := compose.Hash([]byte(text))
	plan := p.Plan(l.Run, hash)
	d.Require(names.PlansOf(l.Run)+hash, applycorev1.ConfigMap(plan, p.Namespace).
		WithLabels(p.RunLabels(l.Run)).
		WithImmutable(true).
		WithData(map[string]string{crew.PlanFile: text}))
	config(d, p)
	deviceClaim(d, p)
	d.Require(resource, applybatchv1.Job(p.Job(l.Run), p.Namespace).
		WithLabels(p.RunLabels(l.Run)).
		WithLabels(in.QueueLabels()).
		WithAnnotations(p.notes()).
		WithSpec(in.JobSpec(plan)))
	return nil
}

// notes of the ledger that a Job and the Run keep, should the ledger be lost.
func (p *pass) notes() map[string]string {
	notes := map[string]string{names.AnnotationRevision: p.ledger.Revision}
	if p.ledger.Rerun != "" {
		notes[names.AnnotationRerun] = p.ledger.Rerun
	}
	if p.ledger.Cycle > 0 {
		notes[names.AnnotationCycle] = strconv.Itoa(int(p.ledger.Cycle))
	}
	return notes
}

// mountedBy reports whether pods of a run mount an object, by its name within the composition. Pods that start again mount it again.
func mountedBy(resource string, run int32) bool {
	return strings.HasPrefix(resource, names.PlansOf(run)) || strings.HasPrefix(resource, names.ConfigPrefix) || strings.HasPrefix(resource, names.ClaimPrefix)
}

// memoryUnlimited reports whether the memory is only a request: beside a GPU, when the spec does not name it.
func (p *pass) memoryUnlimited() bool {
	written := compose.Map(p.Composite.Map(), "spec", "resources")
	return p.spec.Resources.Accelerated() && written["memory"] == nil
}

// config files in an immutable ConfigMap named by its content.
func config(d *compose.Draft, p *pass) {
	if p.spec.Config == nil {
		return
	}
	hash := podspec.ConfigHash(p.spec.Config)
	d.Require(names.ConfigPrefix+hash, podspec.ConfigMap(p.Config(hash), p.Namespace, p.Labels(), p.spec.Config))
}

// deviceClaim is the template of the claims of the pods, which cannot change: it is named by its content, like the config.
func deviceClaim(d *compose.Draft, p *pass) {
	r := p.spec.Resources.DeviceRequest
	if r == nil {
		return
	}
	hash := podspec.DevicesHash(r)
	d.Require(names.ClaimPrefix+hash, podspec.ClaimTemplate(p.DeviceClaim(hash), p.Namespace, p.Labels(), r))
}
