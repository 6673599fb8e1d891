// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another
// object, and lose the first.
const (
	nameAccess             = "access"
	nameAccessCredential   = "access-credential"
	nameBudget             = "pdb"
	nameCA                 = "ca"
	nameCAIssuer           = "ca-issuer"
	nameConfig             = "config"
	nameConsumerPrefix     = "consumer-"
	nameDCS                = "dcs"
	nameIssuer             = "issuer"
	nameMemberPrefix       = "member-"
	nameMembersCertificate = "members-certificate"
	nameMonitor            = "monitor"
	nameNetworkPolicy      = "networkpolicy"
	namePods               = "pods"
	nameReadOnly           = "ro"
	nameReadWrite          = "rw"
	nameRoleBinding        = "rolebinding"
	nameRules              = "rules"
	nameServerCertificate  = "server-certificate"
	nameServiceAccount     = "serviceaccount"
	nameTopology           = "topology"
	nameVolumeClaim        = "volumeclaim"
)

const kindStatefulSet = "StatefulSet"

// Labels and annotations of composed objects and of pods, beside those that the Topology goes by.
const (
	labelName       = "app.kubernetes.io/name"
	labelInstance   = "app.kubernetes.io/instance"
	labelManagedBy  = "app.kubernetes.io/managed-by"
	labelPartOf     = "app.kubernetes.io/part-of"
	labelGeneration = "capstan.dev/generation"

	// annotationRevision names, on a StatefulSet, all that reaches its pod as far as the spec and the platform's settings say it.
	// Its template is pinned by it.
	annotationRevision = "capstan.dev/revision"

	// annotationVersion holds, on a StatefulSet, the major version of its data.
	annotationVersion = "capstan.dev/version"

	// annotationRestarted holds, on a StatefulSet, the revision that was started twice, because some parameters take effect only
	// after the leader has them.
	annotationRestarted = "capstan.dev/restarted"

	// annotationInputs holds, on a StatefulSet, what its revision was made of.
	annotationInputs = "capstan.dev/revision-of"

	// annotationStopped tells, on a StatefulSet of a Database that is hibernated, whether its member led or followed when it was
	// stopped.
	annotationStopped = "capstan.dev/stopped"

	// annotationSkipped holds, on the coordination object, the id of the switchover that the Database was made with.
	annotationSkipped = "capstan.dev/switchover-skipped"

	// annotationPinned holds, on the coordination object, the parameters that need a restart as they were computed when they were
	// asked for.
	annotationPinned = "capstan.dev/pinned-parameters"

	// annotationConfig holds, on the coordination object, what members follow at run time.
	annotationConfig = "config"

	// annotationAccepted of the first Credential is the spec that was accepted last, while clients are switched to another
	// generation by it.
	annotationAccepted = "capstan.dev/accepted-spec"
)

// Suffixes of the names of objects.
const (
	suffixAccess    = "access"
	suffixCA        = "ca"
	suffixOfMembers = "members"
	suffixPods      = "pods"
	suffixRO        = "ro"
	suffixRW        = "rw"
	suffixSigner    = "selfsigned"
	suffixServer    = "server"
)

// names of everything that one generation of a Database has.
type names struct {
	name, namespace string

	// identity of the Database, empty until it is known.
	identity string

	generation int
	traits     engine.Traits
}

// letters of the members, in the order they are made.
var letters = strings.Split("abcdefghi", "")

// called is the name of an object of the Database.
func (s *names) called(suffix string) string { return s.name + "-" + suffix }

// base that everything of this generation of the Database is found by: the value of the label of the Database on its pods and
// volumes. No Database has a dot in its name, so that of a later generation is no other's.
func (s *names) base() string { return baseOf(s.name, s.generation) }

func baseOf(name string, generation int) string {
	if generation <= 1 {
		return name
	}
	return fmt.Sprintf("%s.g%d", name, generation)
}

// ownMembers is the name of what the members of this generation have for themselves: their account, whose name says which pods
// they may label, and their configuration.
func (s *names) ownMembers() string { return s.base() + "-" + suffixOfMembers }

// in this generation, the name within the composition of what each generation has.
func (s *names) in(resource string) string {
	if s.generation <= 1 {
		return resource
	}
	return fmt.Sprintf("%s-g%d", resource, s.generation)
}

// memberPrefix begins the names of members: of their StatefulSets, and so of pods and volumes, whose names have no dots.
func (s *names) memberPrefix() string {
	if s.generation <= 1 {
		return s.name + "-"
	}
	return fmt.Sprintf("%s-g%d-", s.name, s.generation)
}

// member of a letter.
func (s *names) member(letter string) string { return s.memberPrefix() + letter }

// scope that members keep their objects under. It has a part of the identity, so that a stranger of the same name finds nothing.
func (s *names) scope() string {
	if s.identity == "" {
		return ""
	}
	return s.scopeOf(s.generation)
}

// scopeOf a generation, once there is an identity.
func (s *names) scopeOf(generation int) string {
	return baseOf(s.name, generation) + "-" + s.identity[:min(8, len(s.identity))]
}

// host of a Service of the Database, from everywhere in the cluster.
func (s *names) host(suffix string) string {
	return fmt.Sprintf("%s.%s.svc", s.called(suffix), s.namespace)
}

// podHost of a member.
func (s *names) podHost(letter string) string {
	return fmt.Sprintf("%s-0.%s", s.member(letter), s.host(suffixPods))
}

// labels of every composed object.
func (s *names) labels() map[string]string {
	return map[string]string{
		labelName:                     s.traits.App,
		labelInstance:                 s.name,
		labelManagedBy:                "capstan",
		observev1alpha1.LabelDatabase: s.name,
	}
}

// ownLabels of what belongs to one generation.
func (s *names) ownLabels() map[string]string {
	l := s.labels()
	l[observev1alpha1.LabelDatabase] = s.base()
	return l
}

// selector of the pods of all members of this generation.
func (s *names) selector() map[string]string {
	return map[string]string{observev1alpha1.LabelDatabase: s.base()}
}

// everyMember selects the pods of the members of all generations that there are.
func (s *cluster) everyMember() *applymetav1.LabelSelectorApplyConfiguration {
	all := s.generations()
	if len(all) == 1 {
		return applymetav1.LabelSelector().WithMatchLabels(s.selector())
	}
	bases := make([]string, 0, len(all))
	for _, g := range all {
		bases = append(bases, baseOf(s.name, g))
	}
	return applymetav1.LabelSelector().WithMatchExpressions(applymetav1.LabelSelectorRequirement().
		WithKey(observev1alpha1.LabelDatabase).WithOperator(metav1.LabelSelectorOpIn).WithValues(bases...))
}

// metadata of an object of the Database.
func (s *names) metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(s.namespace).WithLabels(s.labels())
}
