// SPDX-License-Identifier: Apache-2.0

// Package names has the names of everything that belongs to an Algorithm: objects, slots, labels and annotations.
package names

import (
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another
// object.
const (
	Activator          = "activator"
	ActivatorAccount   = "activator-serviceaccount"
	ActivatorBinding   = "activator-rolebinding"
	ActivatorPolicy    = "activator-networkpolicy"
	Analysis           = "analysis"
	AwakeService       = "service-awake"
	ClaimPrefix        = "claim-"
	ConfigPrefix       = "config-"
	GRPCRoute          = "grpcroute"
	HookPrefix         = "hook-"
	HookJobPrefix      = "hookjob-"
	ModelAliasPrefix   = "modelalias-"
	ModelCache         = "models"
	ModelsKept         = "models-kept"
	ModelVersionPrefix = "modelversion-"
	Monitor            = "servicemonitor"
	NetworkPolicy      = "networkpolicy"
	RevisionPrefix     = "revision-"
	Route              = "route"
	Rules              = "prometheusrule"
	Service            = "service"
	ServiceAccount     = "serviceaccount"
)

// An Algorithm has two slots. Requests reach one of them, the live one. A new revision starts in the other, the idle one, and
// traffic shifts to it once it can serve. Then the slots have changed their parts, and no pod was started again for it.
const (
	SlotA = "a"
	SlotB = "b"
)

// Slots in their order.
var Slots = []string{SlotA, SlotB}

// Other slot than the given one.
func Other(slot string) string {
	if slot == SlotA {
		return SlotB
	}
	return SlotA
}

// IsSlot reports whether a text names a slot.
func IsSlot(slot string) bool { return slot == SlotA || slot == SlotB }

// Deployment of a slot within the composition.
func Deployment(slot string) string { return "deployment-" + slot }

// SlotService of a slot within the composition.
func SlotService(slot string) string { return "service-" + slot }

// Budget of a slot for disruptions within the composition.
func Budget(slot string) string { return "pdb-" + slot }

// Autoscaler of a slot within the composition.
func Autoscaler(slot string) string { return "autoscaler-" + slot }

// ComposedAutoscaler of a slot is a HorizontalPodAutoscaler that is composed directly.
func ComposedAutoscaler(slot string) string { return "hpa-" + slot }

// Labels and annotations of composed objects and of pods.
const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	LabelAlgorithm = "capstan.dev/algorithm"
	LabelSlot      = "capstan.dev/slot"

	// LabelHookOf is on the pods of hooks. They have none of the labels above, by which the pods of the Algorithm are selected.
	LabelHookOf = "capstan.dev/hook-of"

	// AnnotationRevision is, on the Deployment and on pods, the hash of everything that reaches the pods. It identifies the
	// observed Deployment, which no comparison could: admission may change any other field.
	AnnotationRevision = "capstan.dev/revision"

	// AnnotationIdle is on the Deployment of a slot in which no revision runs. It stays, without pods, for the next one: an object that
	// comes and goes is another generation of the Algorithm each time, for which Crossplane applies every object twice.
	AnnotationIdle = "capstan.dev/idle"

	// LabelIdle is what the disruption budget of such a slot selects beside the labels of the slot. No pod has it.
	LabelIdle = "capstan.dev/idle"

	// AnnotationModel holds, on the Deployment, which model of the registry its pods serve.
	AnnotationModel = "capstan.dev/model"

	// AnnotationLedger holds, on the Service and the route of the Algorithm, what requests reach.
	AnnotationLedger = "capstan.dev/ledger"

	// AnnotationSleep holds, on the Service of an Algorithm that may sleep, whether it does.
	AnnotationSleep = "capstan.dev/sleep"

	// LabelActivator has, on the pods of an activator, the name of its Algorithm. They have none of the labels of its own pods.
	LabelActivator = "capstan.dev/activator"
)

// Names of the container that serves and of its ports.
const (
	Container   = "algorithm"
	PortHTTP    = "http"
	PortMetrics = "metrics"
)

// Names is what the names of an Algorithm's objects are made of.
type Names struct{ Name, Namespace string }

// Labels of every composed object.
func (n Names) Labels() map[string]string {
	return map[string]string{labelName: n.Name, labelManagedBy: "capstan", LabelAlgorithm: n.Name}
}

// SlotLabels of the objects of a slot, and of its pods.
func (n Names) SlotLabels(slot string) map[string]string {
	l := n.Labels()
	l[LabelSlot] = slot
	return l
}

// Pods selects the pods of both slots.
func (n Names) Pods() map[string]string { return map[string]string{LabelAlgorithm: n.Name} }

// SlotPods selects the pods of a slot.
func (n Names) SlotPods(slot string) map[string]string {
	return map[string]string{LabelAlgorithm: n.Name, LabelSlot: slot}
}

// OfSlot is the name of the objects of a slot.
func (n Names) OfSlot(slot string) string { return compose.Name(n.Name, slot) }

// ServiceOf a slot has a longer name than its other objects, because the Service of an Algorithm has its name: reco and reco-a
// must not collide in one namespace.
func (n Names) ServiceOf(slot string) string { return compose.Name(n.Name, "slot", slot) }

// ActivatorName is the name of the objects of the activator. No Algorithm has such a name (see package validation).
func (n Names) ActivatorName() string { return compose.Name(n.Name, "slot", "activator") }

// ActivatorPods selects the pods of the activator.
func (n Names) ActivatorPods() map[string]string { return map[string]string{LabelActivator: n.Name} }

// AwakeName is the name of the Service by which the activator reaches the pods of the live slot.
func (n Names) AwakeName() string { return compose.Name(n.Name, "slot", "live") }

// CacheClaim is the name of the claim of the model cache.
func (n Names) CacheClaim() string { return compose.Name(n.Name, "models") }

// Config is the name of the ConfigMap whose content has a hash.
func (n Names) Config(hash string) string { return compose.Name(n.Name, "config", hash) }

// DeviceClaim is the name of the ResourceClaimTemplate whose content has a hash.
func (n Names) DeviceClaim(hash string) string { return compose.Name(n.Name, "devices", hash) }

// OfModel is the name of an object about a model of the registry.
func (n Names) OfModel(hash string) string { return compose.Name(n.Name, "model", hash) }

// OfHook is the name of what sends the requests of a hook. With the hash no hook of another Algorithm has it: both names may contain
// hyphens.
func (n Names) OfHook(hook string) string {
	return compose.Name(n.Name, "hook", hook, compose.Hash([]byte(n.Name+"/"+hook)))
}

// Metadata of an object of the Algorithm.
func (n Names) Metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(n.Namespace).WithLabels(n.Labels())
}
